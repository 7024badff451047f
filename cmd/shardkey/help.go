package main

import (
	"context"
	"flag"
	"fmt"
	"runtime/debug"
	"strings"
)

// commands lists the commands in the order of the overview.
func commands() []*command {
	return []*command{
		decodeCommand(), rangeCommand(), checkCommand(), planCommand(), lintCommand(), generateCommand(), helpCommand(), versionCommand(),
	}
}

func find(name string) *command {
	for _, c := range commands() {
		if c.name == name {
			return c
		}
	}
	return nil
}

// overview is the help of the tool as a whole.
func overview() string {
	var b strings.Builder
	b.WriteString("shardkey looks at the keys, rules and statements of programs that fill the keys of\nsharded INSERTs with github.com/shardkey/shardkey.\n\nusage: shardkey COMMAND [flags] [arguments]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-10s %s\n", c.name, c.short)
	}
	b.WriteString("\n'shardkey help COMMAND' describes a command.\n")
	return b.String()
}

func helpCommand() *command {
	return &command{
		name: "help", args: "[COMMAND]", short: "describe a command",
		long: "Prints what a command does, and its flags.",
		flags: func(*flag.FlagSet) action {
			return func(_ context.Context, p *program, args []string) error {
				if len(args) == 0 {
					fmt.Fprint(p.out, overview())
					return nil
				}
				c := find(args[0])
				if c == nil || len(args) > 1 {
					return usagef("unknown command %q", strings.Join(args, " "))
				}
				fmt.Fprint(p.out, c.help())
				return nil
			}
		},
	}
}

func versionCommand() *command {
	return &command{
		name: "version", short: "print the version of this tool",
		long: "Prints the version of this tool, of the source that it was built from and of Go.",
		flags: func(*flag.FlagSet) action {
			return func(_ context.Context, p *program, args []string) error {
				if len(args) > 0 {
					return usagef("version takes no arguments")
				}
				info, ok := debug.ReadBuildInfo()
				if !ok {
					info = &debug.BuildInfo{}
				}
				fmt.Fprintln(p.out, version(info))
				return nil
			}
		},
	}
}

// version describes in one line what a program was built from.
func version(info *debug.BuildInfo) string {
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	words := []string{"shardkey", v}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			words = append(words, s.Value)
		case s.Key == "vcs.modified" && s.Value == "true":
			words = append(words, "modified")
		}
	}
	return strings.TrimSpace(strings.Join(words, " ") + " " + info.GoVersion)
}
