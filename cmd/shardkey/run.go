package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit statuses.
const (
	statusOK    = 0
	statusError = 1 // the answer is an error, or something was found
	statusUsage = 2 // the command line is not understood
)

// usageError says that the command line is not understood.
type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// errReported ends a command that has already printed what is wrong.
var errReported = errors.New("shardkey: see above")

// errOutput ends a command whose output cannot be written. What that means is said
// at the end of run, which writes again.
var errOutput = errors.New("shardkey: output")

// run runs the command that args name and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	status := p.execute(ctx, args)
	switch err := p.out.Flush(); {
	case errors.Is(err, syscall.EPIPE): // the reader has seen what it wanted
	case err != nil:
		fmt.Fprintln(p.stderr, "shardkey: output:", err)
		return max(status, statusError)
	}
	return status
}

func (p *program) execute(ctx context.Context, args []string) int {
	root := p.rootCommand()
	if len(args) == 0 {
		fmt.Fprint(p.stderr, helpText(root))
		return statusUsage
	}
	if args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd {
		if p.complete(ctx, root, args) != nil {
			return statusError // a script asked, which shows nothing
		}
		return statusOK
	}
	ran, arranged, err := arrange(root, args)
	if err == nil {
		root.SetArgs(arranged)
		ran, err = root.ExecuteContextC(ctx)
	}
	var usage *usageError
	switch {
	case err == nil, errors.Is(err, errOutput):
		return statusOK
	case errors.As(err, &usage):
		return p.misused(ran, err)
	case !errors.Is(err, errReported):
		p.fail(err)
	}
	return statusError
}

// rootCommand has all commands, in the order of the overview.
func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "shardkey",
		Long:          "shardkey looks at the keys, rules and statements of programs that fill the keys of\nsharded INSERTs with github.com/shardkey/shardkey.",
		SilenceErrors: true,
		SilenceUsage:  true,
		// One of our own says less.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		// Anything else that could run is a command of its own.
		RunE: func(*cobra.Command, []string) error { return printVersion(p) },
	}
	root.Flags().Bool("version", false, "print the version of this tool")
	root.PersistentFlags().Var(&p.colours.when, "color", "when to colour: auto (on terminals), always or never")
	root.SetOut(p.out)
	root.SetErr(io.Discard) // errors are printed by the program
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { fmt.Fprint(p.out, helpText(c)) })
	root.SetHelpCommand(helpCommand(p))
	cobra.EnableCommandSorting = false
	root.AddCommand(decodeCommand(p), rangeCommand(p), checkCommand(p), planCommand(p), lintCommand(p), generateCommand(p), workersCommand(p))
	root.AddCommand(doctorCommand(p), migrateCommand(p), initCommand(p))
	root.AddCommand(versionCommand(p), completionCommand(p))
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		completeFlags(c)
	}
	return root
}

// fail prints an error after what has been printed so far: on standard error, or
// with -o json as an object on standard output.
func (p *program) fail(err error) {
	if p.json {
		_ = p.emit(struct {
			Error string `json:"error"`
		}{plain(err)})
		return
	}
	p.report(err)
}

// report prints an error on standard error, after what has been printed so far.
func (p *program) report(err error) {
	p.reportText(plain(err))
}

func (p *program) reportText(text string) {
	_ = p.out.Flush() // run sees it again
	fmt.Fprintln(p.stderr, p.colours.err(red, "shardkey:"), text)
}

func (p *program) misused(c *cobra.Command, err error) int {
	help := "shardkey help"
	if c.HasParent() {
		help += " " + c.Name()
	}
	p.report(fmt.Errorf("%w\nsee '%s'", err, help))
	return statusUsage
}
