package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// arrange writes a command line as the command library reads it. Flags have one
// dash or two, -strict as --strict, as in Go's own tools, and may come before,
// between and after the arguments; after "--" all are arguments, and so is a
// negative number or duration, since no flag begins with a digit.
// It returns the command too.
func arrange(root *cobra.Command, args []string) (c *cobra.Command, arranged []string, err error) {
	c = root
	var path, flags, rest []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--" && c == root:
			return c, nil, usagef("give the command before --")
		case arg == "--":
			rest, args = append(rest, args...), nil
		case isFlag(arg):
			flag := twoDashes(arg)
			if takesNext(c, flag) {
				if len(args) == 0 {
					return c, nil, usagef("%s needs a value", arg)
				}
				flag, args = flag+"="+args[0], args[1:]
			}
			flags = append(flags, flag)
		case c == root:
			if c = child(root, arg); c == nil {
				return root, nil, unknownCommand(root, arg)
			}
			path = []string{arg}
		default:
			rest = append(rest, arg)
		}
	}
	return c, append(append(append(path, flags...), "--"), rest...), nil
}

// isFlag reports whether an argument is a flag: neither a negative number nor -,
// which is standard input.
func isFlag(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && (arg[1] < '0' || arg[1] > '9')
}

// twoDashes is a flag as the library takes it. -h alone has one letter there.
func twoDashes(arg string) string {
	if strings.HasPrefix(arg, "--") || arg == "-h" {
		return arg
	}
	return "-" + arg
}

// takesNext reports whether the word after a flag is its value.
func takesNext(c *cobra.Command, flag string) bool {
	f := c.Flag(strings.TrimPrefix(flag, "--"))
	return f != nil && f.NoOptDefVal == ""
}

func child(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

func unknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return usagef("unknown command %s%s", quoted(name), didYouMean(name, names))
}

// didYouMean is the end of a message about a wrong word: empty when no right
// one is near.
func didYouMean(wrong string, right []string) string {
	if word := nearest.Word(wrong, right); word != "" {
		return "; did you mean " + word + "?"
	}
	return ""
}

// flagError says what is wrong with a flag, as it is written here.
func flagError(c *cobra.Command, err error) error {
	var (
		absent  *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case errors.As(err, &absent):
		name := absent.GetSpecifiedName()
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "-"+f.Name)
			}
		})
		return usagef("unknown flag -%s%s", name, didYouMean(name, names))
	case errors.As(err, &missing):
		return usagef("-%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		return invalidValue(invalid)
	}
	return usagef("%v", err)
}

// quoted is a word that somebody typed, as an error shows it: the beginning of a
// long one, and nothing of what may be a data source name with its password.
func quoted(word string) string {
	if strings.Contains(word, "@") {
		return `"…"`
	}
	return strconv.Quote(shorten(word))
}

func invalidValue(invalid *pflag.InvalidValueError) error {
	want := ""
	switch invalid.GetFlag().Value.Type() {
	case "bool":
		want = "neither true nor false"
	case "int":
		want = "not a number"
	case "duration":
		want = "not a duration: write it with its unit, as 10ms, 1s or 1h30m"
	default:
		return usagef("-%s %s is %v", invalid.GetFlag().Name, quoted(invalid.GetValue()), invalid.Unwrap())
	}
	return usagef("-%s %s is %s", invalid.GetFlag().Name, quoted(invalid.GetValue()), want)
}
