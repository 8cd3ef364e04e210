package records

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/parley-tools/parley/host"
)

// CheckDurable returns an error unless each server has on its disk what it acknowledges, also after the machine has
// lost its power. The protocol does not show that to clients, so it is read from the monitoring addresses of the
// servers, URLs separated by commas. One of them must be that of the server of a connection, if there is one. Without
// an address, the note says what is not known.
func CheckDurable(ctx context.Context, conn *nats.Conn, monitors string) (note string, err error) {
	if monitors == "" {
		return "whether the server has a record on its disk when it acknowledges it is not known: the protocol does not " +
			"say; fleet.monitor is the address at which the server does, such as http://127.0.0.1:8222", nil
	}
	isMonitored := conn == nil || !conn.IsConnected()
	for monitor := range strings.SplitSeq(monitors, ",") {
		id, always, err := askMonitor(ctx, strings.TrimSpace(monitor))
		if err != nil {
			return "", host.Errorf(host.Unavailable, "fleet.monitor: %v", err)
		}
		if !always {
			return "", host.Errorf(host.ConfigError, "the server at %s acknowledges records before they are on its disk; "+
				"expected sync_interval: always in the block jetstream of its configuration", monitor)
		}
		isMonitored = isMonitored || id == conn.ConnectedServerId()
	}
	if !isMonitored {
		return "", host.Errorf(host.ConfigError, "fleet.monitor: %s is of another server than the one at %s", monitors,
			conn.ConnectedUrlRedacted())
	}
	return "", nil
}

// askMonitor returns the id of a server, and whether it writes each message to the disk before it acknowledges it.
func askMonitor(ctx context.Context, url string) (id string, always bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/varz", nil)
	if err != nil {
		return "", false, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", false, err
	}
	defer answer.Body.Close()
	var about struct {
		ID        string `json:"server_id"`
		JetStream struct {
			Config struct {
				SyncAlways bool `json:"sync_always"`
			} `json:"config"`
		} `json:"jetstream"`
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&about)
	if err != nil || about.ID == "" {
		return "", false, fmt.Errorf("%s answers %s, expected what a nats-server says of itself", request.URL, answer.Status)
	}
	return about.ID, about.JetStream.Config.SyncAlways, nil
}
