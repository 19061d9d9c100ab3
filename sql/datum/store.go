package datum

// storeClass says how rows, arrays and records hold the values of a type. The
// numbers are part of the stored format.
type storeClass byte

const (
	storeBytes   storeClass = iota // length, bytes
	storeBool                      // one byte, 0 or 1
	storeByte                      // one byte
	storeInt                       // zigzag varint
	storeFixed8                    // eight bytes, little endian
	storeFloat4                    // four bytes, little endian
	storeFloat8                    // eight bytes, little endian
	storeNumeric                   // see appendNumericValue
	store16                        // sixteen bytes: uuid, interval
	store12                        // twelve bytes: timetz
	storeClasses                   // how many there are
)

// Field is one attribute of a composite type.
type Field struct {
	Name string
	Type Type
}

// EnumLabel is one label of an enum. Values are ordered by Sort, which never
// changes once given (pg_enum.enumsortorder); a label put between two others
// gets a number between theirs.
type EnumLabel struct {
	OID   OID
	Label string
	Sort  float32
}
