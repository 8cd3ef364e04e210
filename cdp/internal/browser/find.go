package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// EnvVar is the environment variable that names the browser when no flag does.
const EnvVar = "PARLEY_CHROME"

// Found is a browser's executable and how it was found.
type Found struct {
	Path string
	// From is "flag", "PARLEY_CHROME", "config", or the name or path that was searched for.
	From string
}

// Why returns a sentence that explains why this browser was chosen.
func (f Found) Why() string {
	switch f.From {
	case FromFlag:
		return "the parameter chrome names it"
	case EnvVar:
		return EnvVar + " names it"
	case fromConfig:
		return "the configuration names it"
	}
	var missing []string
	for _, candidate := range candidates(runtime.GOOS, os.Getenv) {
		if candidate == f.From {
			break
		}
		missing = append(missing, candidate)
	}
	if len(missing) == 0 {
		return f.From + " is searched for first"
	}
	return f.From + " exists; not found before it: " + strings.Join(missing, ", ")
}

// FromFlag is the value of Found.From for a browser that the call itself named.
const (
	FromFlag   = "flag"
	fromConfig = "config"
)

// NotFoundError reports that no browser was found, what was tried and how to install one.
type NotFoundError struct {
	// Requested is the explicit choice that failed, such as "PARLEY_CHROME=/x". It is empty if there was none.
	Requested string
	// Tried lists every name and path that was tried, in order.
	Tried []string
	// Install is a shell command that installs a browser on this platform.
	Install string
}

func (e *NotFoundError) Error() string {
	if e.Requested != "" {
		return fmt.Sprintf("%s is not an executable program: "+
			"give the absolute path of Chrome, Chromium or Edge, or leave it out", e.Requested)
	}
	return fmt.Sprintf("no Chrome, Chromium or Edge found; searched for %s; install one: %s",
		strings.Join(e.Tried, ", "), e.Install)
}

// Find returns the browser to launch: the one that flag names, else env, else config, else the first of Chrome,
// Chromium and Edge at the usual paths. Each argument is a path or a name in PATH; empty means not given. If an
// explicit choice does not exist, Find fails instead of using another browser. The error is a *NotFoundError.
func Find(flag, env, config string) (Found, error) {
	for _, choice := range []struct{ value, from, prefix string }{
		{flag, FromFlag, ""}, {env, EnvVar, EnvVar + "="}, {config, fromConfig, "the configured browser "},
	} {
		if choice.value == "" {
			continue
		}
		path, err := lookUp(choice.value)
		// Only the process that makes the call knows the working folder.
		relative := choice.from != FromFlag && filepath.Base(choice.value) != choice.value && !filepath.IsAbs(choice.value)
		if err != nil || relative {
			return Found{}, &NotFoundError{
				Requested: choice.prefix + choice.value, Tried: []string{choice.value},
				Install: installCommand(runtime.GOOS, exists),
			}
		}
		return Found{path, choice.from}, nil
	}
	paths := candidates(runtime.GOOS, os.Getenv)
	for _, candidate := range paths {
		if path, err := lookUp(candidate); err == nil {
			return Found{path, candidate}, nil
		}
	}
	return Found{}, &NotFoundError{Tried: paths, Install: installCommand(runtime.GOOS, exists)}
}

// lookUp returns the absolute path of a program.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// candidates lists names to look up in PATH and absolute paths, the preferred ones first.
func candidates(goos string, getenv func(string) string) []string {
	switch goos {
	case "darwin":
		apps := []string{
			"Google Chrome.app/Contents/MacOS/Google Chrome",
			"Chromium.app/Contents/MacOS/Chromium",
			"Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
		}
		var paths []string
		for _, app := range apps {
			paths = append(paths, "/Applications/"+app)
			if home := getenv("HOME"); filepath.IsAbs(home) {
				paths = append(paths, home+"/Applications/"+app)
			}
		}
		return append(paths, "google-chrome", "chromium")
	case "windows":
		var paths []string
		for _, app := range []string{
			`Google\Chrome\Application\chrome.exe`,
			`Chromium\Application\chrome.exe`,
			`Microsoft\Edge\Application\msedge.exe`,
		} {
			for _, root := range []string{"ProgramFiles", "ProgramFiles(x86)", "LocalAppData"} {
				if dir := getenv(root); dir != "" {
					paths = append(paths, dir+`\`+app)
				}
			}
		}
		return append(paths, "chrome.exe", "msedge.exe")
	default:
		return []string{
			"google-chrome-stable", "google-chrome", "/opt/google/chrome/chrome",
			"chromium", "chromium-browser", "/snap/bin/chromium", "/usr/lib/chromium/chromium",
			"microsoft-edge-stable", "microsoft-edge", "/opt/microsoft/msedge/msedge",
		}
	}
}

func installCommand(goos string, have func(string) bool) string {
	switch {
	case goos == "darwin":
		return "brew install --cask chromium"
	case goos == "windows":
		return "winget install Google.Chrome"
	case have("/usr/bin/dnf"):
		return "sudo dnf install chromium"
	case have("/usr/bin/pacman"):
		return "sudo pacman -S chromium"
	case have("/sbin/apk"):
		return "apk add chromium"
	case have("/usr/bin/zypper"):
		return "sudo zypper install chromium"
	default:
		return "sudo apt-get install chromium"
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
