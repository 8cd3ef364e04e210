package keeper
import "testing"
func TestDbg(t *testing.T) {
	cfg := config(t)
	url := site(t, map[string]string{"/": plainPage, "/two": "<title>Two</title>"})
	c := start(t, cfg)
	open(t, c, url+"/")
	_, err := c.Open(bounded(t), OpenRequest{URL: url+"/two", TimeoutMS: 2000})
	t.Log(err)
	ev, _ := c.Events(bounded(t), EventsRequest{})
	for _, e := range ev.Events { t.Log(string(e)) }
}
