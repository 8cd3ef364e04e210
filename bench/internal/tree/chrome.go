package tree

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
)

// ErrNoChrome says that Parley finds no browser.
var ErrNoChrome = errors.New("parley doctor finds no browser")

// Chrome returns the browser that Parley finds.
func Chrome(binary string, env []string) (string, error) {
	cmd := exec.Command(binary, "doctor", "--json")
	cmd.Env = env
	raw, err := cmd.Output()
	var answer struct {
		Data struct {
			Checks []struct{ Name, Status, Detail string }
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	for _, c := range answer.Data.Checks {
		if c.Name == "chrome" && c.Status == "ok" {
			path, _, _ := strings.Cut(c.Detail, ": ")
			return path, nil
		}
	}
	return "", errors.Join(ErrNoChrome, err)
}
