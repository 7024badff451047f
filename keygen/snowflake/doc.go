package snowflake
