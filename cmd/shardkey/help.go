package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpText is a command's own page, or that of the tool as a whole.
func helpText(c *cobra.Command) string {
	var b strings.Builder
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "%s\n\nusage: %s COMMAND [flags] [arguments]\n\n", strings.TrimSpace(c.Long), c.CommandPath())
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				fmt.Fprintf(&b, "  %-10s %s\n", sub.Name(), sub.Short)
			}
		}
		if c.HasParent() {
			return b.String()
		}
		b.WriteString("\n'shardkey help COMMAND' describes a command. Flags have one dash or two.\n")
		return b.String()
	}
	name, args, _ := strings.Cut(c.Use, " ")
	fmt.Fprintf(&b, "usage: %s\n\n%s\n", strings.TrimRight(strings.TrimSuffix(c.CommandPath(), name)+name+" [flags] "+args, " "), strings.TrimSpace(c.Long))
	if c.Example != "" {
		fmt.Fprintf(&b, "\nexamples:\n%s\n", strings.Trim(c.Example, "\n"))
	}
	b.WriteString("\nflags:\n")
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			b.WriteString(flagHelp(f))
		}
	})
	return b.String()
}

// flagHelp describes a flag as Go's own tools do.
func flagHelp(f *pflag.Flag) string {
	name, usage := pflag.UnquoteUsage(f)
	text := fmt.Sprintf("  -%s %s", f.Name, name)
	text = strings.TrimRight(text, " ") + "\n    \t" + strings.ReplaceAll(usage, "\n", "\n    \t")
	switch {
	case f.DefValue == "" || f.DefValue == "false" || f.DefValue == "[]" || f.DefValue == "0s":
	case f.Value.Type() == "string":
		text += fmt.Sprintf(" (default %q)", f.DefValue)
	default:
		text += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	return text + "\n"
}

func helpCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "describe a command",
		Long:  "Prints what a command does, and its flags.",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			for _, sub := range c.Root().Commands() {
				if len(args) == 0 && !sub.Hidden {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of := c.Root()
			for _, name := range args {
				if next := child(of, name); next != nil {
					of = next
					continue
				}
				return unknownCommand(of, name)
			}
			fmt.Fprint(p.out, helpText(of))
			return nil
		},
	}
}

func versionCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "print the version of this tool",
		Long:  "Prints the version of this tool, of the source that it was built from and of Go.",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("version takes no arguments")
			}
			return printVersion(p)
		},
	}
	p.outputFlag(c.Flags())
	return c
}

func printVersion(p *program) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	v := versionOf(info)
	if p.json {
		return p.emit(v)
	}
	fmt.Fprintln(p.out, v)
	return nil
}

// version is what a program was built from.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // after the revision
	Go       string `json:"go"`
}

func versionOf(info *debug.BuildInfo) version {
	v := version{Version: info.Main.Version, Go: info.GoVersion}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v version) String() string {
	words := []string{"shardkey", v.Version}
	if v.Revision != "" {
		words = append(words, v.Revision)
	}
	if v.Modified {
		words = append(words, "modified")
	}
	return strings.TrimSpace(strings.Join(words, " ") + " " + v.Go)
}
