package datum

// The OIDs of the built-in types, PostgreSQL's numbers (src/include/catalog/pg_type.dat).
const (
	BoolOID                  OID = 16
	ByteaOID                 OID = 17
	CharOID                  OID = 18
	NameOID                  OID = 19
	Int8OID                  OID = 20
	Int2OID                  OID = 21
	Int2VectorOID            OID = 22
	Int4OID                  OID = 23
	RegProcOID               OID = 24
	TextOID                  OID = 25
	OIDOID                   OID = 26
	TIDOID                   OID = 27
	XIDOID                   OID = 28
	CIDOID                   OID = 29
	OIDVectorOID             OID = 30
	JSONOID                  OID = 114
	PGNodeTreeOID            OID = 194
	JSONArrayOID             OID = 199
	XID8ArrayOID             OID = 271
	CidrOID                  OID = 650
	CidrArrayOID             OID = 651
	Float4OID                OID = 700
	Float8OID                OID = 701
	UnknownOID               OID = 705
	InetOID                  OID = 869
	BoolArrayOID             OID = 1000
	ByteaArrayOID            OID = 1001
	CharArrayOID             OID = 1002
	NameArrayOID             OID = 1003
	Int2ArrayOID             OID = 1005
	Int2VectorArrayOID       OID = 1006
	Int4ArrayOID             OID = 1007
	RegProcArrayOID          OID = 1008
	TextArrayOID             OID = 1009
	TIDArrayOID              OID = 1010
	XIDArrayOID              OID = 1011
	CIDArrayOID              OID = 1012
	OIDVectorArrayOID        OID = 1013
	BpCharArrayOID           OID = 1014
	VarCharArrayOID          OID = 1015
	Int8ArrayOID             OID = 1016
	Float4ArrayOID           OID = 1021
	Float8ArrayOID           OID = 1022
	OIDArrayOID              OID = 1028
	InetArrayOID             OID = 1041
	BpCharOID                OID = 1042
	VarCharOID               OID = 1043
	DateOID                  OID = 1082
	TimeOID                  OID = 1083
	TimestampOID             OID = 1114
	TimestampArrayOID        OID = 1115
	DateArrayOID             OID = 1182
	TimeArrayOID             OID = 1183
	TimestampTZOID           OID = 1184
	TimestampTZArrayOID      OID = 1185
	IntervalOID              OID = 1186
	IntervalArrayOID         OID = 1187
	NumericArrayOID          OID = 1231
	CStringArrayOID          OID = 1263
	TimeTZOID                OID = 1266
	TimeTZArrayOID           OID = 1270
	NumericOID               OID = 1700
	RegProcedureOID          OID = 2202
	RegOperOID               OID = 2203
	RegOperatorOID           OID = 2204
	RegClassOID              OID = 2205
	RegTypeOID               OID = 2206
	RegProcedureArrayOID     OID = 2207
	RegOperArrayOID          OID = 2208
	RegOperatorArrayOID      OID = 2209
	RegClassArrayOID         OID = 2210
	RegTypeArrayOID          OID = 2211
	RecordOID                OID = 2249
	CStringOID               OID = 2275
	AnyOID                   OID = 2276
	AnyArrayOID              OID = 2277
	VoidOID                  OID = 2278
	TriggerOID               OID = 2279
	LanguageHandlerOID       OID = 2280
	InternalOID              OID = 2281
	AnyElementOID            OID = 2283
	RecordArrayOID           OID = 2287
	AnyNonArrayOID           OID = 2776
	UUIDOID                  OID = 2950
	UUIDArrayOID             OID = 2951
	AnyEnumOID               OID = 3500
	JSONBOID                 OID = 3802
	JSONBArrayOID            OID = 3807
	EventTriggerOID          OID = 3838
	RegNamespaceOID          OID = 4089
	RegNamespaceArrayOID     OID = 4090
	RegRoleOID               OID = 4096
	RegRoleArrayOID          OID = 4097
	XID8OID                  OID = 5069
	AnyCompatibleOID         OID = 5077
	AnyCompatibleArrayOID    OID = 5078
	AnyCompatibleNonArrayOID OID = 5079
)

// The descriptors of the built-in types.
var (
	BoolType              = &Desc{OID: BoolOID, Name: "bool", Len: 1, Kind: Base, Category: 'B', Preferred: true, Fixed: true, store: storeBool}
	Bytea                 = &Desc{OID: ByteaOID, Name: "bytea", Len: -1, Kind: Base, Category: 'U'}
	Char                  = &Desc{OID: CharOID, Name: "char", Len: 1, Kind: Base, Category: 'Z', Fixed: true, store: storeByte}
	Name                  = &Desc{OID: NameOID, Name: "name", Len: 64, Kind: Base, Category: 'S'}
	Int8                  = &Desc{OID: Int8OID, Name: "int8", Len: 8, Kind: Base, Category: 'N', Fixed: true, store: storeInt}
	Int2                  = &Desc{OID: Int2OID, Name: "int2", Len: 2, Kind: Base, Category: 'N', Fixed: true, store: storeInt}
	Int2Vector            = &Desc{OID: Int2VectorOID, Name: "int2vector", Len: -1, Kind: Base, Category: 'A'}
	Int4                  = &Desc{OID: Int4OID, Name: "int4", Len: 4, Kind: Base, Category: 'N', Fixed: true, store: storeInt}
	RegProc               = &Desc{OID: RegProcOID, Name: "regproc", Len: 4, Kind: Base, Category: 'N', Fixed: true, store: storeInt}
	Text                  = &Desc{OID: TextOID, Name: "text", Len: -1, Kind: Base, Category: 'S', Preferred: true}
	OIDType               = &Desc{OID: OIDOID, Name: "oid", Len: 4, Kind: Base, Category: 'N', Preferred: true, Fixed: true, store: storeInt}
	TID                   = &Desc{OID: TIDOID, Name: "tid", Len: 6, Kind: Base, Category: 'U', Fixed: true, store: storeInt}
	XID                   = &Desc{OID: XIDOID, Name: "xid", Len: 4, Kind: Base, Category: 'U', Fixed: true, store: storeInt}
	CID                   = &Desc{OID: CIDOID, Name: "cid", Len: 4, Kind: Base, Category: 'U', Fixed: true, store: storeInt}
	OIDVector             = &Desc{OID: OIDVectorOID, Name: "oidvector", Len: -1, Kind: Base, Category: 'A'}
	JSON                  = &Desc{OID: JSONOID, Name: "json", Len: -1, Kind: Base, Category: 'U'}
	PGNodeTree            = &Desc{OID: PGNodeTreeOID, Name: "pg_node_tree", Len: -1, Kind: Base, Category: 'Z'}
	Cidr                  = &Desc{OID: CidrOID, Name: "cidr", Len: -1, Kind: Base, Category: 'I'}
	Float4                = &Desc{OID: Float4OID, Name: "float4", Len: 4, Kind: Base, Category: 'N', Fixed: true, store: storeFloat4}
	Float8                = &Desc{OID: Float8OID, Name: "float8", Len: 8, Kind: Base, Category: 'N', Preferred: true, Fixed: true, store: storeFloat8}
	Unknown               = &Desc{OID: UnknownOID, Name: "unknown", Len: -2, Kind: Pseudo, Category: 'X'}
	Inet                  = &Desc{OID: InetOID, Name: "inet", Len: -1, Kind: Base, Category: 'I', Preferred: true}
	BpChar                = &Desc{OID: BpCharOID, Name: "bpchar", Len: -1, Kind: Base, Category: 'S'}
	VarChar               = &Desc{OID: VarCharOID, Name: "varchar", Len: -1, Kind: Base, Category: 'S'}
	Date                  = &Desc{OID: DateOID, Name: "date", Len: 4, Kind: Base, Category: 'D', Fixed: true, store: storeInt}
	Time                  = &Desc{OID: TimeOID, Name: "time", Len: 8, Kind: Base, Category: 'D', Fixed: true, store: storeFixed8}
	Timestamp             = &Desc{OID: TimestampOID, Name: "timestamp", Len: 8, Kind: Base, Category: 'D', Fixed: true, store: storeFixed8}
	TimestampTZ           = &Desc{OID: TimestampTZOID, Name: "timestamptz", Len: 8, Kind: Base, Category: 'D', Preferred: true, Fixed: true, store: storeFixed8}
	Interval              = &Desc{OID: IntervalOID, Name: "interval", Len: 16, Kind: Base, Category: 'T', Preferred: true, store: store16}
	TimeTZ                = &Desc{OID: TimeTZOID, Name: "timetz", Len: 12, Kind: Base, Category: 'D', store: store12}
	Numeric               = &Desc{OID: NumericOID, Name: "numeric", Len: -1, Kind: Base, Category: 'N', store: storeNumeric}
	RegProcedure          = &Desc{OID: RegProcedureOID, Name: "regprocedure", Len: 4, Kind: Base, Category: 'N', Fixed: true, store: storeInt}
	RegOper               = &Desc{OID: RegOperOID, Name: "regoper", Len: 4, Kind: Base, Category: 'N', Fixed: true, store: storeInt}
	RegOperator           = &Desc{OID: RegOperatorOID, Name: "regoperator", Len: 4, Kind: Base, Category: 'N', Fixed: true, store: storeInt}
	RegClass              = &Desc{OID: RegClassOID, Name: "regclass", Len: 4, Kind: Base, Category: 'N', Fixed: true, store: storeInt}
	RegType               = &Desc{OID: RegTypeOID, Name: "regtype", Len: 4, Kind: Base, Category: 'N', Fixed: true, store: storeInt}
	Record                = &Desc{OID: RecordOID, Name: "record", Len: -1, Kind: Pseudo, Category: 'P'}
	CString               = &Desc{OID: CStringOID, Name: "cstring", Len: -2, Kind: Pseudo, Category: 'P'}
	Any                   = &Desc{OID: AnyOID, Name: "any", Len: 4, Kind: Pseudo, Category: 'P'}
	AnyArray              = &Desc{OID: AnyArrayOID, Name: "anyarray", Len: -1, Kind: Pseudo, Category: 'P'}
	Void                  = &Desc{OID: VoidOID, Name: "void", Len: 4, Kind: Pseudo, Category: 'P', Fixed: true, store: storeInt}
	Trigger               = &Desc{OID: TriggerOID, Name: "trigger", Len: 4, Kind: Pseudo, Category: 'P'}
	LanguageHandler       = &Desc{OID: LanguageHandlerOID, Name: "language_handler", Len: 4, Kind: Pseudo, Category: 'P'}
	Internal              = &Desc{OID: InternalOID, Name: "internal", Len: 8, Kind: Pseudo, Category: 'P'}
	AnyElement            = &Desc{OID: AnyElementOID, Name: "anyelement", Len: 4, Kind: Pseudo, Category: 'P'}
	AnyNonArray           = &Desc{OID: AnyNonArrayOID, Name: "anynonarray", Len: 4, Kind: Pseudo, Category: 'P'}
	UUID                  = &Desc{OID: UUIDOID, Name: "uuid", Len: 16, Kind: Base, Category: 'U', store: store16}
	AnyEnum               = &Desc{OID: AnyEnumOID, Name: "anyenum", Len: 4, Kind: Pseudo, Category: 'P'}
	JSONB                 = &Desc{OID: JSONBOID, Name: "jsonb", Len: -1, Kind: Base, Category: 'U'}
	EventTrigger          = &Desc{OID: EventTriggerOID, Name: "event_trigger", Len: 4, Kind: Pseudo, Category: 'P'}
	RegNamespace          = &Desc{OID: RegNamespaceOID, Name: "regnamespace", Len: 4, Kind: Base, Category: 'N', Fixed: true, store: storeInt}
	RegRole               = &Desc{OID: RegRoleOID, Name: "regrole", Len: 4, Kind: Base, Category: 'N', Fixed: true, store: storeInt}
	XID8                  = &Desc{OID: XID8OID, Name: "xid8", Len: 8, Kind: Base, Category: 'U', Fixed: true, store: storeInt}
	AnyCompatible         = &Desc{OID: AnyCompatibleOID, Name: "anycompatible", Len: 4, Kind: Pseudo, Category: 'P'}
	AnyCompatibleArray    = &Desc{OID: AnyCompatibleArrayOID, Name: "anycompatiblearray", Len: -1, Kind: Pseudo, Category: 'P'}
	AnyCompatibleNonArray = &Desc{OID: AnyCompatibleNonArrayOID, Name: "anycompatiblenonarray", Len: 4, Kind: Pseudo, Category: 'P'}
)

// baseTypes lists the descriptors above in OID order.
var baseTypes = []*Desc{
	BoolType, Bytea, Char, Name, Int8, Int2, Int2Vector, Int4, RegProc, Text, OIDType, TID,
	XID, CID, OIDVector, JSON, PGNodeTree, Cidr, Float4, Float8, Unknown, Inet, BpChar,
	VarChar, Date, Time, Timestamp, TimestampTZ, Interval, TimeTZ, Numeric, RegProcedure,
	RegOper, RegOperator, RegClass, RegType, Record, CString, Any, AnyArray, Void, Trigger,
	LanguageHandler, Internal, AnyElement, AnyNonArray, UUID, AnyEnum, JSONB, EventTrigger,
	RegNamespace, RegRole, XID8, AnyCompatible, AnyCompatibleArray, AnyCompatibleNonArray,
	AnyRange, AnyMultirange, AnyCompatibleRange, AnyCompatibleMultirange,
}

// arrayOIDs pairs element types with the OIDs of their array types.
var arrayOIDs = []struct {
	elem *Desc
	oid  OID
}{
	{BoolType, BoolArrayOID},
	{Bytea, ByteaArrayOID},
	{Char, CharArrayOID},
	{Name, NameArrayOID},
	{Int8, Int8ArrayOID},
	{Int2, Int2ArrayOID},
	{Int2Vector, Int2VectorArrayOID},
	{Int4, Int4ArrayOID},
	{RegProc, RegProcArrayOID},
	{Text, TextArrayOID},
	{OIDType, OIDArrayOID},
	{TID, TIDArrayOID},
	{XID, XIDArrayOID},
	{CID, CIDArrayOID},
	{OIDVector, OIDVectorArrayOID},
	{JSON, JSONArrayOID},
	{Cidr, CidrArrayOID},
	{Float4, Float4ArrayOID},
	{Float8, Float8ArrayOID},
	{Inet, InetArrayOID},
	{BpChar, BpCharArrayOID},
	{VarChar, VarCharArrayOID},
	{Date, DateArrayOID},
	{Time, TimeArrayOID},
	{Timestamp, TimestampArrayOID},
	{TimestampTZ, TimestampTZArrayOID},
	{Interval, IntervalArrayOID},
	{TimeTZ, TimeTZArrayOID},
	{Numeric, NumericArrayOID},
	{RegProcedure, RegProcedureArrayOID},
	{RegOper, RegOperArrayOID},
	{RegOperator, RegOperatorArrayOID},
	{RegClass, RegClassArrayOID},
	{RegType, RegTypeArrayOID},
	{Record, RecordArrayOID},
	{CString, CStringArrayOID},
	{UUID, UUIDArrayOID},
	{JSONB, JSONBArrayOID},
	{RegNamespace, RegNamespaceArrayOID},
	{RegRole, RegRoleArrayOID},
	{XID8, XID8ArrayOID},
}
