package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The words that are offered in place of the last one. Flags are offered with as many
// dashes as were typed, for the shells drop others.
func TestComplete_words(t *testing.T) {
	t.Chdir("testdata")
	for _, test := range []struct {
		line       []string
		want, lack string
	}{
		{[]string{"de"}, "decode\ttake keys apart", "check"},
		{[]string{"decode", "-la"}, "\n-layout\t", "--layout"},
		{[]string{"decode", "--la"}, "\n--layout\t", "\n-layout"},
		{[]string{"decode", "-"}, "\n-guess\t", "`"},
		{[]string{"decode", "-layout", ""}, "\njs53\t", "classic"},
		{[]string{"decode", "-layout=js"}, "js53", ""},
		{[]string{"decode", "-rule", "mixed.yaml", "-generator", ""}, "\nring\n", "t_order"},
		{[]string{"generate", "-rule=mixed.yaml", "-table", "t_"}, "\nt_order_1\n", "uuid"},
		{[]string{"generate", "-rule", "bad.yaml", "-table", ""}, "\n:4\n", "t_order"},
		{[]string{"generate", "-rule", "-", "-table", ""}, "\n:4\n", "t_order"},
		{[]string{"generate", "-type", "S"}, "\nSNOWFLAKE\n", ""},
		{[]string{"workers", "-rule", "workers.yaml", ""}, "\nsmall\n", ""},
		{[]string{"check", ""}, "\nyaml\nyml\n:8\n", ""},
		{[]string{"plan", "-server", "m"}, "\nmariadb\n", ""},
		{[]string{"check", "-"}, "\n-o\t", "-o\tthe output: text, or json, which is an object a line\n-o"},
		{[]string{"check", "-o", ""}, "\njson\n", ""},
		{[]string{"help", ""}, "\nplan\t", "\nhelp\t\n"},
		{[]string{"completion", ""}, "\nfish\n", ""},
		{[]string{"completion", "fish", ""}, "\n:4\n", "zsh"},
		{[]string{"decode", "-nothing", "-layout", "j"}, "\n", ""},
		{[]string{"nothing", ""}, "\n", ""},
		{[]string{""}, "\nlint\t", ""},
	} {
		_, stdout, _ := runTool(t, append([]string{"__complete"}, test.line...)...)
		if have := "\n" + stdout; !strings.Contains(have, test.want) || test.lack != "" && strings.Contains(have, test.lack) {
			t.Errorf("%q\nhave: %s\nwant: %q and no %q", test.line, stdout, test.want, test.lack)
		}
	}
	if status, _, _ := runTool(t, "__complete"); status == statusOK {
		t.Errorf("no words\nhave: status %d", status)
	}
}

// Each script is one that its shell can read.
func TestComplete_scripts(t *testing.T) {
	dir := t.TempDir()
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}, "powershell": nil} {
		status, stdout, stderr := runTool(t, "completion", shell)
		if status != 0 || stderr != "" || !strings.Contains(stdout, "__complete") {
			t.Errorf("%s\nhave: status %d, %s%s", shell, status, stdout, stderr)
		}
		if _, err := exec.LookPath(shell); err != nil || check == nil {
			continue
		}
		script := filepath.Join(dir, shell)
		if err := os.WriteFile(script, []byte(stdout), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(shell, append(check, script)...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

// In a shell: what bash makes of a line after two tabs.
func TestComplete_inBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "shardkey")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHARDKEY_TEST_RUNS_TOOL", "1")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, test := range []struct{ words, want string }{
		{"shardkey deco", "decode"},
		{"shardkey decode -gu", "-guess"},
		{"shardkey generate -rule testdata/rule.yaml -table t_order_1", "t_order_1 t_order_10 t_order_11 t_order_12 t_order_13 t_order_14 t_order_15"},
	} {
		script := `source <(shardkey completion bash)
_get_comp_words_by_ref() { # what bash-completion has
	words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}
}
__ltrim_colon_completions() { :; }
compopt() { :; }
COMP_WORDS=($LINE); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE=$LINE; COMP_POINT=${#LINE}; COMP_TYPE=9
__start_shardkey
echo $(printf '%s\n' "${COMPREPLY[@]%% *}" | sort -V)`
		command := exec.Command(bash, "-c", script)
		command.Env = append(os.Environ(), "LINE="+test.words)
		out, err := command.CombinedOutput()
		if have := strings.TrimSpace(string(out)); err != nil || have != test.want {
			t.Errorf("%s\nhave: %s, %v\nwant: %s", test.words, have, err, test.want)
		}
	}
}
