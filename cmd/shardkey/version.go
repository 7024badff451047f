package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the output of the command version.
type version struct {
	Version string `json:"version"` // module version, or the commit of a development build
	Go      string `json:"go"`
}

func buildVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version{"(devel)", runtime.Version()}
	}
	return version{cmp.Or(info.Main.Version, "(devel)"), info.GoVersion}
}

func (v version) String() string { return "shardkey " + v.Version + " " + v.Go }

func versionCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Long: `Use version in bug reports. It prints the version of shardkey and the version of Go that
built it.`,
		Example:           "  shardkey version -o json",
		Args:              cobra.ExactArgs(0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			return p.answer(v, func(w io.Writer) { fmt.Fprintln(w, v) }, false)
		},
	}
	p.outputFlag(c.Flags())
	return c
}
