package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/shardkey/shardkey/driver"
	"github.com/spf13/cobra"
)

// version is the output of the command version.
type version struct {
	Version string `json:"version"` // of the module, or the commit of a development build
	Go      string `json:"go"`
}

func buildVersion() version { return version{driver.Version(), runtime.Version()} }

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
