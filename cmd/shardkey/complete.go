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

// completeFlags registers the values of a command's flags, by the flags' names.
func completeFlags(c *cobra.Command) {
	for name, values := range map[string]cobra.CompletionFunc{
		"rule":   ruleFiles,
		"output": words("text", "json"),
		"layout": words(
			snowflake.Classic.String()+"\tSNOWFLAKE, LEAF_SNOWFLAKE", "41-12-10\tREDIS", "js53\tbelow JavaScript's 2^53"),
		"server":    words(serverKinds...),
		"generator": fromRule(generatorNames),
		"type":      words(spi.KeyGeneratorTypes()...),
		"table":     fromRule(allTableNames),
	} {
		if c.Flag(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, values) // the flag exists, and has none yet
		}
	}
}

// fromRule completes with names of the command's rule, if it can be read. Standard input
// is the shell's.
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
