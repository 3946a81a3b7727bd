package faults

// refundDefects lose or double refunds, or tell their callers another outcome.
var refundDefects = []defect{
	{
		"submits", "a refund of unknown outcome is repeated", "internal/transport/run.go",
		"		if a.outcome() == OutcomeUnknown {\n			allowed = 0\n		}\n", "		allowed = row.reads\n",
		[]invariant{doubled},
	},
	{
		"submits", "a broken connection proves that nothing was sent", "internal/transport/evidence.go",
		"return e.Traced && (!e.Connected || e.BytesWritten == 0)", "return e.Traced && !e.ResponseStarted",
		[]invariant{doubled, outcome},
	},
	{
		"submits", "an unfinished request proves that nothing was sent", "internal/transport/evidence.go",
		"return e.Traced && (!e.Connected || e.BytesWritten == 0)", "return !e.Connected || !e.RequestWritten",
		[]invariant{doubled, outcome},
	},
	{
		"submits", "no events prove that nothing was sent", "internal/transport/evidence.go",
		"return e.Traced && (!e.Connected", "return (!e.Connected",
		[]invariant{doubled, outcome},
	},
	{
		"submits", "a refund whose caller left was not sent", "internal/transport/matrix.go",
		"callerEnded:      {0, 0, OutcomeUnknown", "callerEnded:      {0, 0, OutcomeNotSent",
		[]invariant{outcome},
	},
	{
		"submits", "a 500 refuses a refund", "internal/transport/matrix.go",
		"serverFailed:      {2, 0, OutcomeUnknown", "serverFailed:      {2, 2, OutcomeRejected",
		[]invariant{doubled, outcome},
	},
	{
		"submits", "a 503 refuses a refund", "internal/transport/matrix.go",
		"serverUnavailable: {many, 0, OutcomeUnknown", "serverUnavailable: {many, many, OutcomeRejected",
		[]invariant{doubled, outcome},
	},
	{
		"submits", "a 408 refuses a refund", "internal/transport/matrix.go",
		"requestTimeout:    {2, 0, OutcomeUnknown", "requestTimeout:    {2, 0, OutcomeRejected",
		[]invariant{outcome},
	},
	{
		"submits", "a 302 refuses a refund", "internal/transport/matrix.go",
		"movedElsewhere:    {0, 0, OutcomeUnknown", "movedElsewhere:    {0, 0, OutcomeRejected",
		[]invariant{outcome},
	},
	{
		"submits", "an HTML page accepts a refund", "internal/transport/matrix.go",
		"answerIsHTML:    {0, 0, OutcomeUnknown", "answerIsHTML:    {0, 0, OutcomeAccepted",
		[]invariant{outcome},
	},
	{
		"submits", "a cut answer to an accepted refund fails it", "internal/transport/matrix.go",
		"answerCutOff:    {many, 0, OutcomeAccepted", "answerCutOff:    {many, many, OutcomeRejected",
		[]invariant{outcome, doubled},
	},
	{
		"submits", "a resubmitted refund that is refused was not recorded", "internal/transport/run.go",
		"	if r.doubt != nil && (res.Outcome", "	if false && (res.Outcome",
		[]invariant{outcome},
	},
	{
		"submits", "redirects are followed with refunds", "internal/transport/run.go",
		"if via[0].Method != http.MethodGet || next", "if next",
		[]invariant{outcome, miscounted, tooOften},
	},
	{
		"submits", "net/http may send a body again", "internal/transport/attempt.go",
		"	out.GetBody = nil\n", "",
		[]invariant{resent, doubled},
	},
	{
		"submitAll", "records with one id are in flight together", "refunds/bulkrun.go",
		"	case busy:\n", "	case busy && b.over:\n",
		[]invariant{outcome},
	},
	{
		"submitAll", "a bulk submission repeats an unknown outcome", "refunds/bulkrun.go",
		"	b.complete(r, r.receipt, r.err)\n	if b.p", "	if errors.Is(r.err, ErrOutcomeUnknown) && b.refusal == nil {\n		b.ready = append(b.ready, r)\n		return\n	}\n	b.complete(r, r.receipt, r.err)\n	if b.p",
		[]invariant{doubled, miscounted, tooOften, outcome},
	},
	{
		"submitAll", "a bulk submission goes on after its end", "refunds/bulkrun.go",
		"b.client.send(b.ctx, b.wire,", "b.client.send(b.wire, b.wire,",
		[]invariant{overdue},
	},
	{
		"submitAll", "the grace has no end", "refunds/bulkrun.go",
		"time.NewTimer(o.Grace)", "time.NewTimer(o.Grace + time.Hour)",
		[]invariant{overdue},
	},
	{
		"submitAll", "a bulk submission that is left forgets what is in flight", "refunds/bulkresult.go",
		"			if b.o.Abandoned != nil {", "			if b.o.Abandoned == nil {",
		[]invariant{outcome},
	},
	{
		"submitAll", "a result has the place of another", "refunds/bulkrun.go",
		"&record{index: b.progress.Taken,", "&record{index: b.progress.Done,",
		[]invariant{outcome},
	},
	{
		"submitAll", "results are yielded as they come although order was asked for", "refunds/bulkrun.go",
		"	if !b.o.Ordered {\n		b.results = append(b.results, r)", "	if r != nil {\n		b.results = append(b.results, r)",
		[]invariant{outcome},
	},
	{
		"submitAll", "a bulk submission has one more in flight", "refunds/bulkrun.go",
		"	return b.open < b.o.Concurrency\n", "	return b.open <= b.o.Concurrency\n",
		[]invariant{overLimit},
	},
	{
		"submitAll", "the attempts of a submission are not its own", "refunds/bulkresult.go",
		"		s.Attempts = r.receipt.Attempts\n", "		s.Attempts = 1\n",
		[]invariant{miscounted},
	},
}
