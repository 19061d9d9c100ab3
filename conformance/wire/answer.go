package wire

// Answer is what a server says about one query string.
type Answer struct {
	Results []Result
	Notices []Message // warnings and the like, in order
	Err     *Message  // the error that ended it, nil if there was none
	Copies  int       // how often the server asked for data
}

// Result is the answer to one statement of the string.
type Result struct {
	Columns []Column // nil if the statement returns no rows
	Rows    []Row
	Tag     string // command tag
	Out     []byte // data of COPY TO STDOUT
}

// Column describes a column of a result.
type Column struct {
	Name string
	Type uint32 // OID
}

// Row has the values of a row as text.
type Row []Value

// Value is a value as text, or null.
type Value struct {
	Text string
	Null bool
}

// Message is an error or a notice with the fields that clients see.
type Message struct {
	Severity, Code, Text, Detail, Hint, Where string
	Position                                  int32
}
