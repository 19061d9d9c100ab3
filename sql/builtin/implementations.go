package builtin

// The implementations by name, one map per file.
var (
	evals = []evalMap{
		integerEvals(), floatEvals(), numericEvals, textEvals, byteaEvals, quoteEvals,
		patternEvals, regexEvals, arrayEvals, arrayTextEvals, jsonEvals, jsonbEvals, jsonMakeEvals,
		datetimeEvals, crossComparisons(), clockEvals, chainEvals, systemEvals, catalogEvals(), sizeEvals,
		sequenceEvals, transcendentalEvals, numFormatEvals, dateFormatEvals, inetEvals, rangeEvals, recordImageEvals, identifierEvals,
	}
	binds    = []bindMap{textBinds, quoteBinds, arrayBinds, jsonMakeBinds, populateBinds, systemBinds, catalogBinds(), enumBinds, rangeBinds, multirangeBinds, jsonPathBinds}
	sets     = []setMap{regexSets, arrayTextSets, seriesSets, jsonSets, jsonbSets, systemSets}
	bindSets = []bindSetMap{seriesBindSets, populateBindSets, multirangeBindSets, jsonPathBindSets}
)
