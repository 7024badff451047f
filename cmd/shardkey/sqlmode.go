package main

import (
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/rewrite"
)

// modeWords are the words of sql_mode of MySQL 5.7 to 9 and of MariaDB: most say
// nothing about INSERTs, but stand in what SELECT @@sql_mode answers.
var modeWords = strings.Fields(`
	ALLOW_INVALID_DATES ANSI ANSI_QUOTES DB2 EMPTY_STRING_IS_NULL ERROR_FOR_DIVISION_BY_ZERO HIGH_NOT_PRECEDENCE IGNORE_BAD_TABLE_OPTIONS
	IGNORE_SPACE MAXDB MSSQL MYSQL323 MYSQL40 NO_AUTO_CREATE_USER NO_AUTO_VALUE_ON_ZERO NO_BACKSLASH_ESCAPES NO_DIR_IN_CREATE NO_ENGINE_SUBSTITUTION
	NO_FIELD_OPTIONS NO_KEY_OPTIONS NO_TABLE_OPTIONS NO_UNSIGNED_SUBTRACTION NO_ZERO_DATE NO_ZERO_IN_DATE ONLY_FULL_GROUP_BY ORACLE PAD_CHAR_TO_FULL_LENGTH
	PIPES_AS_CONCAT POSTGRESQL REAL_AS_FLOAT SIMULTANEOUS_ASSIGNMENT STRICT_ALL_TABLES STRICT_TRANS_TABLES TIME_ROUND_FRACTIONAL TIME_TRUNCATE_FRACTIONAL TRADITIONAL`)

// parseMode reads the flag -sql-mode.
func parseMode(text string) (rewrite.Mode, error) {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" && !slices.Contains(modeWords, strings.ToUpper(word)) {
			return 0, usagef("-sql-mode: %q is no word of sql_mode%s", word, didYouMean(word, modeWords))
		}
	}
	return rewrite.ParseMode(text), nil
}
