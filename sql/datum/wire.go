package datum

// setFunctions gives a built-in type its functions.
func setFunctions(t *Desc) {
	switch t.OID {
	case BoolOID:
		t.text(parseBool, appendBool).binary(parseBinaryBool, appendBinaryByte)
		t.order(compareUint, keyByte, skipFixed(1), hashIntDatum)
	case CharOID:
		t.text(parseChar, appendChar).binary(parseBinaryChar, appendBinaryByte)
		t.order(compareUint, keyByte, skipFixed(1), hashIntDatum)
	case Int2OID:
		t.text(parseInt2, appendInt).binary(parseBinaryInt2, appendBinary2)
		t.order(compareInt, keyInt8, skipFixed(8), hashIntDatum)
	case Int4OID:
		t.text(parseInt4, appendInt).binary(parseBinaryInt4, appendBinary4)
		t.order(compareInt, keyInt8, skipFixed(8), hashIntDatum)
	case Int8OID:
		t.text(parseInt8, appendInt).binary(parseBinaryInt8, appendBinary8)
		t.order(compareInt, keyInt8, skipFixed(8), hashIntDatum)
	case OIDOID:
		t.text(parseOIDText, appendInt).binary(parseBinaryUint4, appendBinary4)
		t.order(compareUint, keyUint4, skipFixed(4), hashIntDatum)
	case XIDOID, CIDOID:
		t.text(parseXID, appendInt).binary(parseBinaryUint4, appendBinary4)
		t.Hash = hashIntDatum
	case XID8OID:
		t.text(parseXID8, appendUint8).binary(parseBinaryInt8, appendBinary8)
		t.order(compareUint, keyUint8, skipFixed(8), hashIntDatum)
	case TIDOID:
		t.text(parseTID, appendTID).binary(parseBinaryTID, appendBinaryTID)
		t.order(compareUint, keyUint8, skipFixed(8), hashIntDatum)
	case RegProcOID, RegProcedureOID, RegOperOID, RegOperatorOID, RegClassOID, RegTypeOID, RegRoleOID, RegNamespaceOID:
		parse, print := regType(t)
		t.text(parse, print).binary(parseBinaryUint4, appendBinary4)
		t.order(compareUint, keyUint4, skipFixed(4), hashIntDatum)
	case Float4OID:
		t.text(parseFloat4, appendFloat4).binary(parseBinaryFloat4, appendBinaryFloat4)
		t.order(compareFloat, keyFloat4, skipFixed(4), hashFloat)
	case Float8OID:
		t.text(parseFloat8, appendFloat8).binary(parseBinaryFloat8, appendBinaryFloat8)
		t.order(compareFloat, keyFloat8, skipFixed(8), hashFloat)
	case NumericOID:
		t.text(parseNumeric, appendNumeric).binary(parseBinaryNumeric, appendBinaryNumeric)
		t.order(NumericCmp, keyNumeric, skipNumericKey, hashNumeric)
		t.Coerce = coerceNumeric
	case TextOID, UnknownOID, CStringOID:
		t.text(parseText, appendText).binary(parseBinaryText, appendBinaryText)
		t.order(compareText, keyBytes, skipEscaped, hashBytesDatum)
	case NameOID:
		t.text(parseName, appendText).binary(parseBinaryName, appendBinaryText)
		t.order(compareText, keyBytes, skipEscaped, hashBytesDatum)
	case VarCharOID:
		t.text(parseVarChar, appendText).binary(parseBinaryVarChar, appendBinaryText)
		t.order(compareText, keyBytes, skipEscaped, hashBytesDatum)
		t.Coerce = coerceVarChar
	case BpCharOID:
		t.text(parseBpChar, appendText).binary(parseBinaryBpChar, appendBinaryText)
		t.order(compareBpChar, keyBpChar, skipEscaped, hashBpChar)
		t.Coerce = coerceBpChar
	case PGNodeTreeOID:
		t.text(pseudoParse(t), appendText).binary(pseudoParseBinary(t), appendBinaryText)
	case ByteaOID:
		t.text(parseBytea, appendBytea).binary(parseBinaryBytes, appendBinaryBytes)
		t.order(compareBytes, keyBytes, skipEscaped, hashBytesDatum)
	case UUIDOID:
		t.text(parseUUID, appendUUID).binary(parseBinaryUUID, appendBinaryBytes)
		t.order(compareBytes, keyRaw, skipFixed(16), hashBytesDatum)
	case DateOID:
		t.text(parseDate, appendDate).binary(parseBinaryDate, appendBinary4)
		t.order(compareInt, keyInt4, skipFixed(4), hashIntDatum)
	case TimeOID:
		t.text(parseTime, appendTime).binary(parseBinaryTime, appendBinary8)
		t.order(compareInt, keyInt8, skipFixed(8), hashIntDatum)
		t.Coerce = coerceTime
	case TimeTZOID:
		t.text(parseTimeTZ, appendTimeTZ).binary(parseBinaryTimeTZ, appendBinaryBytes)
		t.order(compareTimeTZ, keyTimeTZ, skipFixed(12), hashBytesDatum)
		t.Coerce = coerceTimeTZ
	case TimestampOID:
		t.text(parseTimestamp, appendTimestamp).binary(parseBinaryTimestamp, appendBinary8)
		t.order(compareInt, keyInt8, skipFixed(8), hashIntDatum)
		t.Coerce = coerceTimestamp
	case TimestampTZOID:
		t.text(parseTimestampTZ, appendTimestampTZ).binary(parseBinaryTimestamp, appendBinary8)
		t.order(compareInt, keyInt8, skipFixed(8), hashIntDatum)
		t.Coerce = coerceTimestamp
	case IntervalOID:
		t.text(parseInterval, appendInterval).binary(parseBinaryInterval, appendBinaryBytes)
		t.order(compareInterval, keyInterval, skipFixed(16), hashInterval)
		t.Coerce = coerceInterval
	case InetOID:
		t.text(parseInet, appendInet).binary(parseBinaryInet(false), appendBinaryInet(0))
		t.order(compareInet, keyInet, skipInetKey, hashBytesDatum)
	case CidrOID:
		t.text(parseCidr, appendCidr).binary(parseBinaryInet(true), appendBinaryInet(1))
		t.order(compareInet, keyInet, skipInetKey, hashBytesDatum)
	case JSONOID:
		t.text(parseJSON, appendText).binary(parseBinaryJSON, appendBinaryText)
	case JSONBOID:
		t.text(parseJSONB, appendJSONB).binary(parseBinaryJSONB, appendBinaryJSONB)
		t.order(compareJSONB, keyJSONB, skipJSONBKey, hashJSONB)
	case JSONPathOID:
		t.text(parsePathText, appendText).binary(parseBinaryPath, appendBinaryPath)
	case Int2VectorOID:
		setVectorFunctions(t, Int2)
	case OIDVectorOID:
		setVectorFunctions(t, OIDType)
	case RecordOID:
		t.text(parseAnonymousRecord, appendRecord(nil)).binary(parseBinaryRecord(nil), appendBinaryRecord(nil))
		t.Compare, t.Hash = compareRecords(nil), hashRecord(nil)
	case VoidOID:
		t.text(parseVoid, appendNothing).binary(parseBinaryVoid, appendNothingBinary)
	default:
		t.text(pseudoParse(t), appendNothing).binary(pseudoParseBinary(t), appendNothingBinary)
	}
}

func (t *Desc) text(parse func(string, int32, *Format) (Datum, error), print func([]byte, Datum, *Format) []byte) *Desc {
	t.Parse, t.Append = parse, print
	return t
}

func (t *Desc) binary(parse func([]byte, int32) (Datum, error), print func([]byte, Datum) []byte) *Desc {
	t.ParseBinary, t.AppendBinary = parse, print
	return t
}

func (t *Desc) order(compare func(a, b Datum) int, key func([]byte, Datum) []byte, skip func([]byte) ([]byte, error), hash func(uint64, Datum) uint64) {
	t.Compare, t.AppendKey, t.SkipKey, t.Hash = compare, key, skip, hash
}
