package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestDockerfile follows the instructions without Docker. The copied files must exist, the
// program must build as in the image and need no library, and the user must not be root.
func TestDockerfile(t *testing.T) {
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("the program is built for Linux")
	}
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	// root is the repository, which stands for /src. Other paths are in a directory with the
	// results of the build.
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	built := t.TempDir()
	here := func(file string) string {
		if rest, ok := strings.CutPrefix(file, "/src"); ok {
			return filepath.Join(root, rest)
		}
		return filepath.Join(built, file)
	}
	var from, dir, program string
	for line := range strings.Lines(string(text)) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		words := strings.Fields(rest)
		switch instruction {
		case "FROM":
			from = words[0]
		case "WORKDIR":
			dir = words[0]
		case "COPY":
			source := here(words[len(words)-2])
			if len(words) == 2 {
				source = filepath.Join(root, words[0])
			}
			if _, err := os.Stat(source); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(line), err)
			}
		case "RUN":
			if !strings.HasPrefix(from, "golang:") {
				t.Fatalf("%s: have: %s\nwant: an image with Go", strings.TrimSpace(line), from)
			}
			command := exec.Command("sh", "-c", strings.Replace(rest, "-o /", "-o "+built+"/", 1))
			command.Dir = here(dir)
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", rest, err, out)
			}
		case "ENTRYPOINT":
			program = strings.Trim(rest, `[]"`)
		}
	}
	if !strings.HasSuffix(from, ":nonroot") {
		t.Errorf("the image\nhave: %s\nwant: a user that isn't root", from)
	}
	file, err := elf.Open(here(path.Clean(program)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("%s needs %q, %v", program, libraries, err)
	}
	container := in(t, manifest(t)["Deployment"], "spec", "template", "spec", "containers", 0)
	if in(t, container, "securityContext", "runAsNonRoot") != true {
		t.Error("the manifest lets it run as root")
	}
	if image := in(t, container, "image").(string); !strings.Contains(string(text), "-t "+image+" ") {
		t.Errorf("the Dockerfile doesn't build %s", image)
	}
}
