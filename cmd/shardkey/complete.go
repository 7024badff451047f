package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

func completionCommand(p *program) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "print a shell's completion script",
		Long: "Prints what makes a shell complete commands, flags, and the names in a rule: SHELL is\n" +
			"bash, zsh, fish or powershell.",
		Example: "  source <(shardkey completion bash)     # in ~/.bashrc\n" +
			"  source <(shardkey completion zsh)      # in ~/.zshrc, after compinit\n" +
			"  shardkey completion fish > ~/.config/fish/completions/shardkey.fish",
		ValidArgsFunction: firstOf(shells...),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("give the shell: %s", list(shells))
			}
			switch root := c.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(p.out, true)
			case "zsh":
				return root.GenZshCompletion(p.out)
			case "fish":
				return root.GenFishCompletion(p.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(p.out)
			}
			return usagef("shell %q is none of %s%s", args[0], list(shells), didYouMean(args[0], shells))
		},
	}
}

// complete answers what a completion script asks: what may stand in place of
// the last word.
func (p *program) complete(ctx context.Context, root *cobra.Command, args []string) error {
	asked := args[:1:1]
	last := len(args) - 1
	for _, arg := range args[1:max(last, 1)] {
		if isFlag(arg) && arg != "--" {
			arg = twoDashes(arg)
		}
		asked = append(asked, arg)
	}
	if last == 0 {
		return usagef("give the words of the command line")
	}
	word := args[last]
	oneDash := strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--")
	if oneDash {
		word = "-" + word
	}
	root.SetArgs(append(asked, word))
	var out bytes.Buffer
	root.SetOut(&out)
	err := root.ExecuteContext(ctx)
	before := ""
	for line := range strings.Lines(out.String()) {
		if oneDash && strings.HasPrefix(line, "--") {
			line = line[1:] // the shells drop what does not begin as the word does
		}
		if line == before {
			continue // a flag of one letter, which is there with one dash and two
		}
		before = line
		_, _ = io.WriteString(p.out, strings.ReplaceAll(line, "`", "")) // run sees it again
	}
	return err
}

// completions are words that may stand in a place, where no file may.
type completions = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

// oneOf completes with one of some words.
func oneOf(words ...string) completions {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// firstOf completes the first argument with one of some words.
func firstOf(words ...string) completions {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// files completes with files that end in one of some words, and directories.
func files(ends ...string) completions {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return ends, cobra.ShellCompDirectiveFilterFileExt
	}
}

// ruleFiles completes with rule files.
var ruleFiles = files("yaml", "yml")

// completeFlags makes the values of a command's flags known by their names.
func completeFlags(c *cobra.Command) {
	for name, values := range map[string]completions{
		"rule":      ruleFiles,
		"o":         oneOf("text", "json"),
		"color":     oneOf("auto", "always", "never"),
		"layout":    oneOf(layouts()...),
		"server":    oneOf(serverKinds...),
		"generator": fromRule(generatorsOf),
		"type":      oneOf(spi.KeyGeneratorTypes()...),
		"table":     fromRule(tablesOf),
	} {
		if c.Flag(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, values) // it is there, and has none yet
		}
	}
}

// layouts are the usual ones, and those of the types that have one of their own.
func layouts() []string {
	return []string{
		snowflake.Classic.String() + "\tSNOWFLAKE, LEAF_SNOWFLAKE",
		"41-12-10\tREDIS",
		snowflake.JS53.String() + "\twithin JavaScript's 2^53",
	}
}

// fromRule completes with names of the rule that -rule names, when it can be read.
func fromRule(names func(*cobra.Command) []string) completions {
	return func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return names(c), cobra.ShellCompDirectiveNoFileComp
	}
}

func generatorsOf(c *cobra.Command) []string {
	if r := typedRule(c); r != nil {
		return generatorNames(r)
	}
	return nil
}

func tablesOf(c *cobra.Command) []string {
	if r := typedRule(c); r != nil {
		return allTableNames(r)
	}
	return nil
}

// allTableNames are the logical and actual tables of a rule, each once.
func allTableNames(r *rule.Rule) (names []string) {
	for _, t := range r.Tables() {
		names = append(names, t.Logical)
		names = append(names, t.Actual...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// typedRule is the rule of the flag -rule; nil when it cannot be read. A - is no file
// here: standard input is the shell's.
func typedRule(c *cobra.Command) *rule.Rule {
	r, err := rule.Load(c.Flag("rule").Value.String())
	if err != nil {
		return nil
	}
	return r
}
