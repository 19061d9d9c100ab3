package datum

// handCases are questions to PostgreSQL chosen by hand.
func handCases() []pgCase {
	var cases []pgCase
	io := func(typ string, inputs ...string) {
		for _, in := range inputs {
			cases = append(cases, pgCase{op: "io", args: []string{typ, "ISO, MDY", "postgres", "UTC", in}})
		}
	}
	op := func(name string, args ...string) { cases = append(cases, pgCase{op: name, args: args}) }

	io("bool", "t", "true", "TRUE", "yes", "on", "1", "f", "off", "no", "0", " tru ", "o", "of", "x", "", "2", "truex")
	io("int2", "0", "-32768", "32767", "32768", "-32769", " 12 ", "+5", "", "x", "1x", "1.5", "- 1", "--1", "0x1")
	io("int4", "0", "2147483647", "-2147483648", "2147483648", "99999999999999999999", "1 2", "\t7\n", "1e3")
	io("int8", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775809", "abc")
	io("oid", "0", "4294967295", "4294967296", "-1", "x", " 12 ")
	io("float8", "0", "-0", "1", "1.5", "1e15", "1e14", "123456789012345678", "1e-5", "0.0001", "1e400", "-1e400", "1e-400", "NaN", "nan",
		"Infinity", "-inf", "inf", "+Infinity", "1.7976931348623157e308", "5e-324", "0.1", "1e", "x", "", "1_0", "1e+05", ".5", "5.", ".", "100000000000000000000000", "-1e23", "9007199254740993", "1e22", "8.5899345e9", "2e23")
	io("float4", "0", "1e6", "123456", "999999", "1234567", "0.1", "1e39", "1e-46", "3.4028235e38", "NaN", "-Infinity", "1e-5", "16777217", "x", "33554432", "8.589973e9", "1e10", "3.3554434e7", "67108868", "1e9", "-8589973000")
	io("text", "abc", "", "héllo", "a'b", "\\")
	io("varchar(3)", "abc", "abcd", "abc  ", "ab", "", "äöü", "äöüx")
	io("bpchar(3)", "abc", "abcd", "abc  ", "a", "", "äö", "  a b")
	io("bpchar", "a  ", "")
	io("name", "abc", "0123456789012345678901234567890123456789012345678901234567890123456789", "012345678901234567890123456789012345678901234567890123456789012ä")
	io("char", "a", "ab", "", `\303`, `\000`, "é")
	io("bytea", `\x`, `\xdeadBEEF`, `\xde ad`, `\xd`, `\xdg`, "abc", `a\\b`, `\000\377`, `\400`, `\`, `a\b`, `\x0é`)
	io("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}", "a0eebc999c0b4ef8bb6d6bb9bd380a11",
		"a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111", "x", "{a0eebc999c0b4ef8bb6d6bb9bd380a11", "a0e-ebc999c0b4ef8bb6d6bb9bd380a11")
	io("numeric", "0", "-0", "1.10", "00012.3400", ".5", "5.", ".", "", "1e10", "1e-10", "1.5e3", "123e-2", "NaN", "nan", "Infinity", "-Infinity", "inf", "x", "1e", "1e+",
		"1 2", " 12.5 ", "1e131071", "1e131072", "1e-16383", "1e-16384", "1e99999999999", "1_000", "0x1f", "--1", "12345678901234567890123456789012345678901234567890.123456789", "36028797018963967", "36028797018963968", "-36028797018963968", "0.000", "0e5", "+1")
	io("numeric(5,2)", "123.456", "999.995", "999.994", "-999.99", "1000", "0", "NaN", "Infinity", "1e-9")
	io("numeric(3,-2)", "12345", "99949", "99950", "49")
	io("numeric(3,5)", "0.00999", "0.01", "0.009994", "0.009995")
	io("numeric(5)", "123.5", "99999.5")
	io("json", `{"a":1}`, ` [1, 2] `, `{"a"`, `{"a":}`, `{a:1}`, `[1,]`, `{"a":1,}`, `[1 2]`, `tru`, `"a`, `"\x"`, `"\u00"`, `"\ud800"`, `01`, `1.`, `-`, ``, `1 2`, `{"a" 1}`, `{1:2}`, `nul`, `"`+"\t"+`"`)
	io("jsonb", `{"b":1,"aa":2,"a":3,"b":4}`, `[1,2.50,-0,1e3,1E-2,"x",null,true,false,{},[]]`, `"\u00e9\n\"\\/"`, `"\u0000"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\ud83d"`, `"\u0001"`,
		`{"a":{"b":[{"c":null}]}}`, `5`, `"s"`, `  null `, `[`, `{"a":1}}`, `1e400`, `[[[]]]`, `{"":1}`)
	io("int4[]", "{}", "{1,2,3}", "{1,NULL,3}", "{{1,2},{3,4}}", "[0:2]={1,2,3}", "[1:2][-1:0]={{1,2},{3,4}}", "{{1,2},{3}}", "{1,{2}}", "{1,2", "1,2", "{a}", "{1,,2}", "{1,2}x", "{ 1 , 2 }", "[1:2]={1}", "{{}}", "{{{{{{{1}}}}}}}", " {1} ", "[2:1]={}", "{a,{b}}x", " {", "{1}}", "[1]={1}")
	io("text[]", `{a,"b c","d\"e",NULL,"NULL","",null}`, `{"a,b",c\,d,"{x}"," y "}`, `{a b , c}`, `{"a"b}`, `{a"b"}`, `{"a`, `{é}`)
	io("numeric(5,2)[]", "{1.234,NULL,5}", "{1000}")
	io("varchar(2)[]", "{ab,abc}")
	io("timestamp[]", `{"2020-01-01 00:00:00",infinity}`)
	io("int2vector", "1 2 3", "", " 4 ")
	io("oidvector", "1 2 4294967295")
	io("tid", "(1,2)", "(4294967295,65535)", "(1,65536)", "1,2")

	io("inet", "10.1.2.3", "10.1.2.3/8", "::1", "2001:db8::1/64", "::ffff:1.2.3.4", "10.1.2.3/33", "x", "", "1.2.3", "1.2.3.4/", "0.0.0.0/0", "fe80::1%eth0")
	io("cidr", "10.0.0.0/8", "10.1.2.3/8", "192.168.0.1", "2001:db8::/32", "10.0.0.0/33")
	for _, a := range []string{"10.0.0.0/8", "10.0.0.0/16", "10.1.2.3/8", "10.1.2.3", "9.255.255.255", "::1", "::/0", "10.1.0.0/16"} {
		for _, b := range []string{"10.0.0.0/8", "10.0.0.1", "10.1.2.3/16", "::1/64"} {
			op("inet cmp", a, b)
		}
	}
	for _, name := range []string{"varchar(10)", "varchar", "bpchar(3)", "char", "bpchar", "numeric(10,2)", "numeric(4,-2)", "numeric", "int4", "int2[]", "int8", "float4", "float8", "bool", "timestamp", "timestamp(3)",
		"timestamptz(0)", "time(9)", "timetz", "interval", "interval(3)", "name", "text[]", "varchar(5)[]", "numeric(7,1)[]", "oid", "regclass", "jsonb", "uuid", "bytea", "date", "int2vector", "timestamptz[]"} {
		op("format_type", name)
	}

	for _, t := range Builtins() {
		op("pg_type", t.Name)
	}

	dates := []string{"2020-02-29", "2021-02-29", "January 8, 1999", "1999-Jan-08", "Jan-08-1999", "08-Jan-1999", "08-Jan-99", "99-Jan-08", "1/8/1999", "1/18/1999", "18/1/1999", "01/02/03",
		"19990108", "990108", "1999.008", "J2451187", "January 8, 99 BC", "0044-03-15 BC", "infinity", "-infinity", "epoch", "20200101T10", "2020-1-1", "10000-01-01", "5874897-12-31", "5874898-01-01",
		"4714-11-24 BC", "4714-11-23 BC", "0000-01-01", "2020-13-01", "2020-00-10", "x", "", "2020-01-01 10:00", "2020-01-01 25:00", "Sat Feb 29 2020", "20200229 101112", "2020 Feb 29", "29.02.2020", "2020/02/29", "99-01-08", "1999 366", "1999-001", "today x", "allballs", "Feb 30 2020", "12:00"}
	for _, order := range []string{"ISO, MDY", "SQL, DMY", "German, DMY", "Postgres, MDY", "Postgres, DMY", "ISO, YMD", "SQL, MDY"} {
		for _, d := range dates {
			cases = append(cases, pgCase{op: "io", args: []string{"date", order, "postgres", "UTC", d}})
		}
	}
	stamps := []string{"2020-02-29 12:34:56", "2020-02-29 12:34:56.789", "2020-02-29 12:34:56.1234567", "2020-02-29T12:34:56Z", "2020-02-29 12:34:56+02", "2020-02-29 12:34:56 -0830", "2020-02-29 12:34:56+05:30:15",
		"2020-07-01 00:00 America/New_York", "2020-07-01 00:00 PST", "2020-07-01 00:00 EST5EDT", "2020-03-08 02:30", "2020-11-01 01:30", "20200229T123456", "20200229 123456.5", "2020-02-29 24:00:00", "2020-02-29 24:00:01", "2020-02-29 23:59:60",
		"Feb 29 12:34:56 2020", "Sat Feb 29 12:34:56.5 2020 PST", "2020-02-29 12:34 PM", "2020-02-29 11:34 PM", "2020-02-29 12:04 AM", "2020-02-29 13:00 AM", "infinity", "-infinity", "epoch", "294276-12-31 23:59:59.999999", "294277-01-01",
		"4714-11-24 00:00:00 BC", "4714-11-23 23:59:59 BC", "0001-01-01 00:00:00", "0044-03-15 10:00:00 BC", "2020-02-29 1:2:3", "2020-02-29 12", "2020-02-29 1234", "2020-02-29 2599", "am 2020-02-29", "2020-02-29 dst", "x", "", "2020-02-29 12:34:56 Nowhere/City", "2020-02-29 12:60", "2020-02-29 12:34:56+16", "1999-01-08 04:05:06 -8:00", "1999-01-08 04:05:06.789-8", "2020-02-29 040506-08", "J2451187 04:05:06", "1901-12-13 20:45:52", "1883-11-18 12:00:00", "2500-07-01 12:00", "12:34:56 2020-02-29", "2020-02-29 04:05:06 MET DST"}
	for _, style := range []string{"ISO, MDY", "SQL, DMY", "German, DMY", "Postgres, MDY", "Postgres, DMY", "SQL, MDY"} {
		for _, s := range stamps {
			cases = append(cases, pgCase{op: "io", args: []string{"timestamp", style, "postgres", "UTC", s}},
				pgCase{op: "io", args: []string{"timestamptz", style, "postgres", testZone, s}})
		}
	}
	for _, z := range []string{"UTC", "Asia/Kolkata", "Europe/Berlin", "Australia/Lord_Howe", "UTC+3", "<+03>-3", "EST5EDT", "CET-1CEST,M3.5.0,M10.5.0/3"} {
		for _, s := range []string{"2020-02-29 12:34:56", "2020-07-01 12:00", "1999-10-31 02:30:00", "1890-01-01", "2100-07-01"} {
			cases = append(cases, pgCase{op: "io", args: []string{"timestamptz", "ISO, MDY", "postgres", z, s}},
				pgCase{op: "io", args: []string{"timestamptz", "Postgres, MDY", "postgres", z, s}})
			op("at time zone", s, z)
		}
	}
	op("at time zone", "2020-07-01 12:00", "EST")
	op("at time zone", "2020-07-01 12:00", "MSK")
	op("at time zone", "2020-07-01 12:00", "america/new_york")
	for _, z := range []string{"Nowhere", "x3", "foo/bar+3", "+3", "abc3def", "abc3/x", "abc25", "abc168", "3", "<ab", "abc3def,junk", "abc3def4", "abc-5:30def,J60/2:30,300", "abc3def,M13.1.0,M11.1.0", "america/new_york5"} {
		op("at time zone", "2020-07-01 12:00", z)
	}
	io("timestamp(2)", "2020-02-29 12:34:56.785", "2020-02-29 12:34:56.7849", "1999-12-31 23:59:59.995")
	io("timestamp(0)", "2020-02-29 12:34:56.5", "1999-12-31 23:59:59.5")
	io("time", "12:34:56", "12:34:56.789", "123456", "1234", "12", "24:00:00", "24:00:01", "12:60", "allballs", "12:34 PM", "12:34 AM", "13:34 AM", "04:05:06-08:00", "2020-01-01 12:00", "x", "", "12:34:56.1234567", "23:59:60", "T123456", "12:34:56 America/New_York", "040506-08", "12h")
	io("timetz", "12:34:56+02", "12:34:56-08:30", "12:34 PST", "12:34 EST", "123456-07", "24:00:00+00", "2020-07-01 12:00 America/New_York", "12:00 America/New_York", "12:00 UTC", "12:00+16", "x", "12:00")
	io("time(2)", "12:34:56.785", "23:59:59.999")
	io("timetz(1)", "12:34:56.75+02")

	spans := []string{"1 day", "1 day 2 hours", "-1 day +02:03", "1 year 2 mons 3 days 04:05:06.789", "1-2 3 4:05:06", "-1-2 +3 -4:05:06", "P1Y2M3DT4H5M6.7S", "P0001-02-03T04:05:06", "P00010203T040506", "PT36H", "P1W", "P1.5M", "P", "1.5 years", "1.5 months", "1.5 weeks", "1.5 days", "1.3 mons",
		"@ 1 hour ago", "1 month ago", "1 day ago 2 hours", "100000 hours", "1:2:3", "1:2", "90:00:00", "12:60", "5", "-5.5", "1 fortnight", "", "x", "1 century 2 decades", "1 millennium", "3 weeks 2 days", "500 ms", "17 us", "2562047788:00:54.775807", "9999999999 years", "178956970 years 7 mons", "178956971 years", "1 qtr", "1 mon -1 day", "-1 year +2 days", "1 hour 1 hour", "1 day 1 days", "2000-1-1", "0", "00:00", "-00:00:01", "1 year -10 hours", "6 sec 7 ms", "1 sec 0.5 us", "1d2h3m4s", "1 y 1 mon", "-1.5 hours", "0.1 microseconds", "1e3 s", "12345678901234567890 s", "infinity", "1.5 ago", "days 10:20 1.5 week", "1-21-2"}
	for _, style := range []string{"postgres", "postgres_verbose", "sql_standard", "iso_8601"} {
		for _, s := range spans {
			cases = append(cases, pgCase{op: "io", args: []string{"interval", "ISO, MDY", style, "UTC", s}})
		}
	}
	io("interval(2)", "1.239 sec", "1 day 00:00:00.995", "-1.235 s")

	moments := []string{"2020-02-29 12:34:56.789123", "1999-12-31 23:59:59.999999", "2001-01-01", "2000-12-31", "0001-01-01", "0044-03-15 10:00:00 BC", "0100-12-31 BC", "0101-01-01 BC", "1000-06-01 BC", "infinity", "-infinity", "2021-01-03", "2020-12-28", "294276-12-31 23:59:59"}
	for _, field := range []string{"microseconds", "milliseconds", "second", "minute", "hour", "day", "month", "quarter", "year", "week", "isoyear", "decade", "century", "millennium", "dow", "isodow", "doy", "epoch", "julian", "timezone", "timezone_hour", "timezone_minute", "fortnight", "Years", "ago"} {
		for _, m := range moments {
			op("extract timestamp", field, m)
			op("date_trunc", field, m)
		}
		for _, m := range []string{"2020-07-01 12:34:56+00", "2020-01-01 03:04:05", "1880-01-01"} {
			op("extract timestamptz", field, m)
			op("date_trunc tz", field, m)
		}
		for _, m := range []string{"2020-02-29", "0044-03-15 BC", "infinity", "-infinity"} {
			op("extract date", field, m)
		}
		for _, m := range []string{"1 year 2 mons 3 days 04:05:06.789", "-13 mons -5 days -00:00:01.5", "1234 years"} {
			op("extract interval", field, m)
		}
	}
	for _, iv := range []string{"1 mon", "-1 mon", "1 year", "1 day", "24 hours", "1 mon 1 day 1 hour", "-13 mons", "100000 years", "1 us", "-5000 years"} {
		for _, ts := range []string{"2020-01-31 10:00", "2020-03-31", "2020-02-29 12:00", "infinity", "2020-03-07 02:30", "2020-10-31 01:30"} {
			op("timestamp + interval", ts, iv)
			op("timestamptz + interval", ts, iv)
		}
	}
	for _, p := range [][2]string{{"2020-03-31", "2020-02-29"}, {"2001-04-10", "1957-06-13"}, {"1957-06-13", "2001-04-10"}, {"2020-03-01 01:00", "2020-02-29 02:00"}, {"2020-01-31", "2019-12-31 10:00:00.5"}, {"2020-01-01", "2020-01-01"}, {"2020-05-30 00:00", "2020-03-31 12:00"}} {
		op("age", p[0], p[1])
		op("timestamp -", p[0], p[1])
	}
	for _, iv := range []string{"1 mon", "1 mon 15 days 12 hours", "-3 days 04:00", "1 year 2 mons 3 days 04:05:06", "178956970 years", "35 days 30 hours", "-1 mon 40 days -25:00"} {
		for _, f := range []string{"1.5", "0.1", "-2.25", "1e10", "0.3333333333333333", "7"} {
			op("interval *", iv, f)
			op("interval /", iv, f)
		}
		op("interval /", iv, "0")
		op("justify", iv)
		op("justify_days", iv)
		op("justify_hours", iv)
		for _, other := range []string{"30 days", "1 mon", "45 days 12:00", "-1 us"} {
			op("interval cmp", iv, other)
		}
	}
	jsons := []string{"null", `"a"`, `"b"`, "1", "1.0", "2", "true", "false", "[]", "[1]", "[1,2]", "[null]", "{}", `{"a":1}`, `{"b":1}`, `{"a":2}`, `{"aa":1,"b":2}`, `{"a":{"b":[1,2,{"c":3}]}}`, `["a",["b"]]`, `[[1,2],3]`}
	for _, a := range jsons {
		for _, b := range jsons {
			op("jsonb cmp", a, b)
			op("jsonb @>", a, b)
		}
	}
	arrays := []string{"{}", "{1}", "{1,2}", "{NULL}", "{1,NULL}", "{{1,2}}", "{{1},{2}}", "[0:1]={1,2}", "{2}"}
	for _, a := range arrays {
		for _, b := range arrays {
			op("int4[] cmp", a, b)
		}
	}
	floats := []string{"NaN", "Infinity", "-Infinity", "0", "-0", "1", "-1", "1e-300"}
	for _, a := range floats {
		for _, b := range floats {
			op("float8 cmp", a, b)
		}
		op("from float8", a)
	}
	for _, a := range []string{"a", "a ", "a  b", "b", "", " "} {
		for _, b := range []string{"a", "a b", "b ", "  "} {
			op("bpchar cmp", a, b)
		}
	}
	specials := []string{"NaN", "Infinity", "-Infinity", "0", "1", "-1", "2", "-2", "0.5", "3", "-3.5", "0.00"}
	for _, a := range specials {
		for _, b := range specials {
			for _, o := range []string{"+", "-", "*", "/", "%", "^", "div", "cmp", "log"} {
				op(o, a, b)
			}
		}
		for _, o := range []string{"sqrt", "ln", "exp", "ceil", "floor", "abs", "neg", "sign", "int8", "float8", "send"} {
			op(o, a)
		}
		op("round", a, "1")
		op("trunc", a, "0")
	}
	for _, p := range [][2]string{{"2", "0.5"}, {"10", "100"}, {"1.0000001", "1000"}, {"0.9999", "12345.678"}, {"2", "-40"}, {"12345.678", "7"}, {"0.1", "10"}, {"-2", "3"}, {"-2", "-3"}, {"10", "131072"}, {"2", "500000"}, {"0.5", "100000"}, {"1.5", "2"}, {"3", "-1"}, {"123", "1"}, {"99999999", "2.5"}, {"0.000001", "0.1"}, {"1", "99999999999999"}, {"1.1", "300.5"}, {"2", "16384"}, {"-1", "4294967297"}} {
		op("^", p[0], p[1])
	}
	for _, a := range []string{"0.9", "1.1", "0.90000001", "1.000000000001", "0.999999999999999999", "2.718281828459045235", "1e-100", "1e100", "12345678901234567890", "2", "10", "3.00000000000000000000", "0.5"} {
		op("ln", a)
		op("sqrt", a)
		op("log", "10", a)
		op("log", "2", a)
		op("log", a, "10")
	}
	for _, a := range []string{"0", "1", "-1", "5000", "5999", "6000", "-5999", "-6000", "100.123", "-100.123", "0.0000000001", "1.00000000000000000000000001", "-1000", "13.5", "10000000000"} {
		op("exp", a)
	}
	for _, a := range []string{"9223372036854775807.4", "9223372036854775807.5", "-9223372036854775808.4", "-9223372036854775808.5", "0.5", "-0.5", "1.49999", "2.5"} {
		op("int8", a)
		op("round", a, "0")
		op("ceil", a)
		op("floor", a)
	}
	for _, a := range []string{"1e308", "1e309", "1e-324", "0.1", "123456789.123456789", "9007199254740993", "1e22", "1.7976931348623158e308"} {
		op("float8", a)
		op("send", a)
	}
	op("log", "90.71315340308", "1.1014588")
	op("*", "1e131071", "10")
	op("*", "1e-16383", "0.5")
	op("+", "1e131071", "9e131071")
	op("/", "1", "3")
	op("/", "1e-1000", "3")
	op("/", "12345678901234567890", "0.00000000000000000001")
	op("round", "12345.678", "-2")
	op("round", "55555", "-5")
	op("round", "1.5", "3000")
	op("trunc", "-12345.678", "-2")
	return cases
}
