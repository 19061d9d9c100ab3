package pgerr

// Code is a SQLSTATE, five characters. The names follow PostgreSQL's
// src/backend/utils/errcodes.txt.
type Code string

// The codes this project raises. ConditionCode maps PL/pgSQL condition names.
const (
	SuccessfulCompletion Code = "00000"
	Warning              Code = "01000"

	ConnectionException             Code = "08000"
	ProtocolViolation               Code = "08P01"
	TriggeredActionException        Code = "09000"
	FeatureNotSupported             Code = "0A000"
	InvalidGrantOperation           Code = "0LP01"
	CaseNotFound                    Code = "20000"
	CardinalityViolation            Code = "21000"
	DataException                   Code = "22000"
	StringDataRightTruncation       Code = "22001"
	NullValueNoIndicator            Code = "22002"
	NumericValueOutOfRange          Code = "22003"
	NullValueNotAllowed             Code = "22004"
	InvalidDatetimeFormat           Code = "22007"
	DatetimeFieldOverflow           Code = "22008"
	InvalidTimeZoneDisplacement     Code = "22009"
	SubstringError                  Code = "22011"
	DivisionByZero                  Code = "22012"
	InvalidPrecedingOrFollowingSize Code = "22013"
	InvalidArgumentForNtile         Code = "22014"
	IntervalFieldOverflow           Code = "22015"
	InvalidArgumentForNthValue      Code = "22016"
	InvalidEscapeCharacter          Code = "22019"
	InvalidArgumentForLogarithm     Code = "2201E"
	InvalidArgumentForPowerFunction Code = "2201F"
	InvalidArgumentForWidthBucket   Code = "2201G"
	InvalidRowCountInLimit          Code = "2201W"
	InvalidRowCountInOffset         Code = "2201X"
	CharacterNotInRepertoire        Code = "22021"
	InvalidParameterValue           Code = "22023"
	InvalidEscapeSequence           Code = "22025"
	ArraySubscriptError             Code = "2202E"
	InvalidRegularExpression        Code = "2201B"
	InvalidJSONText                 Code = "22030"
	InvalidJSONDatetime             Code = "22031"
	InvalidJSONSubscript            Code = "22033"
	NonNumericJSONItem              Code = "22036"
	SingletonJSONItemRequired       Code = "22038"
	JSONArrayNotFound               Code = "22039"
	JSONMemberNotFound              Code = "2203A"
	JSONNumberNotFound              Code = "2203B"
	JSONObjectNotFound              Code = "2203C"
	InvalidTextRepresentation       Code = "22P02"
	InvalidBinaryRepresentation     Code = "22P03"
	BadCopyFileFormat               Code = "22P04"
	UntranslatableCharacter         Code = "22P05"
	IntegrityConstraintViolation    Code = "23000"
	RestrictViolation               Code = "23001"
	NotNullViolation                Code = "23502"
	ForeignKeyViolation             Code = "23503"
	UniqueViolation                 Code = "23505"
	CheckViolation                  Code = "23514"
	InvalidCursorState              Code = "24000"
	InvalidTransactionState         Code = "25000"
	ActiveSQLTransaction            Code = "25001"
	ReadOnlySQLTransaction          Code = "25006"
	NoActiveSQLTransaction          Code = "25P01"
	InFailedSQLTransaction          Code = "25P02"
	InvalidSQLStatementName         Code = "26000"
	InvalidAuthorizationSpec        Code = "28000"
	InvalidPassword                 Code = "28P01"
	DependentObjectsStillExist      Code = "2BP01"
	FunctionExecutedNoReturn        Code = "2F005"
	InvalidCursorName               Code = "34000"
	InvalidSavepoint                Code = "3B001"
	InvalidCatalogName              Code = "3D000"
	InvalidSchemaName               Code = "3F000"
	SerializationFailure            Code = "40001"
	SyntaxErrorOrAccessRule         Code = "42000"
	SyntaxError                     Code = "42601"
	InsufficientPrivilege           Code = "42501"
	CannotCoerce                    Code = "42846"
	GroupingError                   Code = "42803"
	WindowingError                  Code = "42P20"
	InvalidRecursion                Code = "42P19"
	InvalidForeignKey               Code = "42830"
	InvalidName                     Code = "42602"
	NameTooLong                     Code = "42622"
	ReservedName                    Code = "42939"
	DatatypeMismatch                Code = "42804"
	IndeterminateDatatype           Code = "42P18"
	CollationMismatch               Code = "42P21"
	WrongObjectType                 Code = "42809"
	GeneratedAlways                 Code = "428C9"
	UndefinedColumn                 Code = "42703"
	UndefinedFunction               Code = "42883"
	UndefinedTable                  Code = "42P01"
	UndefinedParameter              Code = "42P02"
	UndefinedObject                 Code = "42704"
	DuplicateColumn                 Code = "42701"
	DuplicateCursor                 Code = "42P03"
	DuplicateDatabase               Code = "42P04"
	DuplicateFunction               Code = "42723"
	DuplicatePreparedStatement      Code = "42P05"
	DuplicateSchema                 Code = "42P06"
	DuplicateTable                  Code = "42P07"
	DuplicateAlias                  Code = "42712"
	DuplicateObject                 Code = "42710"
	AmbiguousColumn                 Code = "42702"
	AmbiguousFunction               Code = "42725"
	AmbiguousParameter              Code = "42P08"
	AmbiguousAlias                  Code = "42P09"
	InvalidColumnReference          Code = "42P10"
	InvalidCursorDefinition         Code = "42P11"
	InvalidFunctionDefinition       Code = "42P13"
	InvalidPreparedStatementDef     Code = "42P14"
	InvalidSchemaDefinition         Code = "42P15"
	InvalidTableDefinition          Code = "42P16"
	InvalidObjectDefinition         Code = "42P17"
	WithCheckOptionViolation        Code = "44000"
	InsufficientResources           Code = "53000"
	DiskFull                        Code = "53100"
	OutOfMemory                     Code = "53200"
	TooManyConnections              Code = "53300"
	ConfigurationLimitExceeded      Code = "53400"
	ProgramLimitExceeded            Code = "54000"
	StatementTooComplex             Code = "54001"
	TooManyColumns                  Code = "54011"
	TooManyArguments                Code = "54023"
	ObjectNotInPrerequisiteState    Code = "55000"
	ObjectInUse                     Code = "55006"
	CantChangeRuntimeParam          Code = "55P02"
	LockNotAvailable                Code = "55P03"
	QueryCanceled                   Code = "57014"
	AdminShutdown                   Code = "57P01"
	CannotConnectNow                Code = "57P03"
	IOError                         Code = "58030"
	RaiseException                  Code = "P0001"
	NoDataFound                     Code = "P0002"
	TooManyRows                     Code = "P0003"
	AssertFailure                   Code = "P0004"
	InternalError                   Code = "XX000"
	DataCorrupted                   Code = "XX001"
)

// IsVerdict reports whether an error with this code may become the outcome of
// a transaction. The class is closed: resource (53), operator intervention
// (57), system (58), configuration (F0) and internal (XX) errors, and
// everything unforeseen, are not in it; a node that meets one while executing
// a block stops.
func (c Code) IsVerdict() bool {
	if len(c) != 5 {
		return false
	}
	switch c[:2] {
	case "53", "57", "58", "F0", "XX", "08":
		return false
	case "00", "01", "02":
		return false
	}
	return true
}

// IsVerdict reports whether err is an [*Error] of the deterministic class.
func IsVerdict(err error) bool {
	e, ok := From(err)
	return ok && e.IsVerdict()
}
