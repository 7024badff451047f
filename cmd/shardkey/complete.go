package main

import (
	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

// ruleFiles completes with rule files and directories.
var ruleFiles = cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)

func words(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// completeFlags registers the completions of a command's flags.
func completeFlags(c *cobra.Command) {
	for name, values := range map[string]cobra.CompletionFunc{
		"rule":   ruleFiles,
		"output": words("text", "json"),
		"layout": words(
			snowflake.Classic.String()+"\tSNOWFLAKE, LEAF_SNOWFLAKE", "41-12-10\tREDIS",
			"js53\tSNOWFLAKE for JavaScript"),
		"server":    words(serverKinds...),
		"generator": fromRule(generatorNames),
		"type":      words(spi.KeyGeneratorTypes()...),
		"table":     fromRule(allTableNames),
	} {
		if c.Flag(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, values) // can't fail: the flag exists
		}
	}
}

// fromRule completes with names from the command's rule file. It offers none if the file
// can't be read, and doesn't read a rule from standard input, which belongs to the shell.
func fromRule(names func(*rule.Rule) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) (found []string, _ cobra.ShellCompDirective) {
		if file, err := ruleFile(c); err == nil {
			if r, err := rule.Load(file); err == nil {
				found = names(r)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
