// Package advisory keeps what the OSV exports say about packages: it reads an export from a URL, a
// zip or a folder, compiles it into one SQLite file for each ecosystem, verifies the file, swaps it
// in whole, and looks versions up in memory. What cannot be verified never replaces what was good
// before. It gives no verdicts and opens no connection: the way to the source is lent to it.
//
// Where a record leaves a doubt, the package reads it as affecting more: a bound that is no version
// ends nothing, a severity that cannot be read is the highest, a version that cannot be ordered is
// affected.
package advisory
