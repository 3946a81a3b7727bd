package faults

// boundDefects break the bounds of calls, or repeat too much or too little.
var boundDefects = []defect{
	{
		"lookups", "a refusal is repeated", "internal/transport/matrix.go",
		"requestRefused:    {0, 0,", "requestRefused:    {many, 0,",
		[]invariant{tooOften},
	},
	{
		"lookups", "nothing is repeated", "internal/transport/run.go",
		"return r.retries < r.settings.MaxRetries &&", "return false &&",
		[]invariant{gaveUp},
	},
	{
		"", "Retry-After is ignored", "internal/transport/run.go",
		"	retryAfter := a.retryAfter()\n", "	retryAfter := time.Duration(0)\n",
		[]invariant{inPause, tooOften},
	},
	{
		"", "Retry-After binds one call only", "internal/transport/run.go",
		"		r.client.gate.pause(min(retryAfter, maxRetryAfter))\n", "",
		[]invariant{inPause},
	},
	{
		"", "repetitions pass the limiter by", "internal/transport/attempt.go",
		"	if err := r.client.gate.pass(ctx, r.settings.Limiter); err != nil {",
		"	if r.attempts > 0 {\n	} else if err := r.client.gate.pass(ctx, r.settings.Limiter); err != nil {",
		[]invariant{overLimit, inPause},
	},
	{
		"crowd", "the retry budget is not asked", "internal/transport/run.go",
		"if !r.client.budget.take(r.cost) {", "if r.client.budget.take(r.cost); false {",
		[]invariant{overBudget},
	},
	{
		"", "a deadline does not reach the network", "internal/transport/attempt.go",
		"ctx, cancel := context.WithCancelCause(wire)", "ctx, cancel := context.WithCancelCause(context.WithoutCancel(wire))",
		[]invariant{overdue, leaked},
	},
	{
		"lookups", "a call without a deadline has no end", "internal/transport/client.go",
		"ctx, cancel = context.WithTimeout(ctx, c.service.CallTimeout)", "ctx, cancel = context.WithCancel(ctx)",
		[]invariant{overdue, leaked},
	},
	{
		"", "a body is not closed", "internal/transport/attempt.go",
		"	defer body.Close()\n	resp.Body = http.NoBody\n", "	resp.Body = http.NoBody\n",
		[]invariant{leaked},
	},
	{
		"lookups", "a refused token is not replaced", "internal/transport/run.go",
		"	r.renewed = token\n	return token != a.token", "	return token == \"\"",
		[]invariant{gaveUp},
	},
	{
		"", "a failure has no condition", "internal/transport/run.go",
		"	} else if row.kind != nil {\n		is = append(is, row.kind)\n	}", "	}",
		[]invariant{untyped},
	},
	{
		"", "a wait of hours is obeyed", "internal/transport/run.go",
		"if !r.mayRepeat(a) || retryAfter > maxRetryAfter {", "if !r.mayRepeat(a) {",
		[]invariant{tooOften},
	},
	{
		"bulk", "a bulk lookup that is left goes on", "bins/bulkrun.go",
		"	b.cancel()\n	b.requests.Wait()\n	for ; b.open > 0;", "	for ; false;",
		[]invariant{leaked},
	},
	{
		"bulk", "a bulk lookup has no bound in flight", "bins/bulkrun.go",
		"make(chan struct{}, o.Concurrency)", "make(chan struct{}, o.Concurrency+2)",
		[]invariant{overLimit},
	},
	{
		"lookups", "a repetition reports the first attempt alone", "internal/transport/run.go",
		"		Attempts:   r.attempts,\n		Body:       a.body,\n		Err:", "		Attempts:   1,\n		Body:       a.body,\n		Err:",
		[]invariant{miscounted},
	},
	{
		"bulk", "a request of a bulk lookup is repeated beyond its bound", "bins/bulkrequest.go",
		"how := lookupHow{patient: true, arrived: leave, useless: enter}", "how, _ := lookupHow{patient: true, arrived: leave}, enter",
		[]invariant{overLimit},
	},
}
