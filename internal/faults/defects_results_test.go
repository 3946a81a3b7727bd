package faults

// resultDefects give wrong answers and contents.
var resultDefects = []defect{
	{
		"downloads", "a broken download is complete", "internal/transport/stream.go",
		"	case err != nil:\n		s.end(s.explain(err))", "	case err != nil:\n		s.end(io.EOF)",
		[]invariant{wrongBytes},
	},
	{
		"downloads", "a stalled download waits", "internal/transport/stream.go",
		"		s.timer.set(s.idle)\n", "		_ = s.idle\n",
		[]invariant{overdue},
	},
	{
		"lookups", "an answer that is no JSON is an empty one", "bins/decode.go",
		"	if err := json.Unmarshal(body, resp); err != nil {\n		return nil, transport.Malformed(err)", "	if err := json.Unmarshal(body, resp); err != nil {\n		return resp, nil",
		[]invariant{wrongAnswer},
	},
	{
		"bulk", "items are taken by their position", "bins/correlate.go",
		"	c.byName((*Result).echo)\n	c.byName(func(r *Result) string { return r.BIN })\n", "	for i := range c.sent {\n		if i < len(c.items) {\n			c.match(i, i)\n		}\n	}\n",
		[]invariant{wrongAnswer},
	},
	{
		"loads", "a caller that leaves a loader ends the request of all", "bins/loader.go",
		"	if s.waiters--; s.waiters > 0 {", "	if s.waiters--; s.waiters > 1 {",
		[]invariant{wrongAnswer},
	},
	{
		"loads", "a loader's card is asked for under another's answer", "bins/loader.go",
		"		if lookup.sent == id {\n			return", "		if lookup.sent != \"\" {\n			return",
		[]invariant{wrongAnswer},
	},
	{
		"downloads", "any part is the rest of a download", "updater/content.go",
		"isMultipart(r.Header) || first != c.pos ||", "isMultipart(r.Header) || r.Length != r.Length ||",
		[]invariant{wrongBytes},
	},
	{
		"downloads", "a whole answer is the rest of a download", "updater/content.go",
		"		if r.Failure == nil && r.StatusCode != http.StatusPartialContent {", "		if r.Failure == nil && r.StatusCode == http.StatusNoContent {",
		[]invariant{wrongBytes},
	},
	{
		"downloads", "the end of a part is that of the content", "updater/content.go",
		"case err == io.EOF && c.end < 0, c.pos", "case err == io.EOF && c.pos >= 0, c.pos",
		[]invariant{wrongBytes},
	},
	{
		"downloads", "resumes are not bounded", "updater/content.go",
		"	case c.fruitless >= maxResumes:", "	case c.fruitless >= 1000*maxResumes:",
		[]invariant{tooOften},
	},
	{
		"files", "a file is done before its content", "updater/transfer.go",
		"	if err != nil {\n		return nil, err\n	}\n	return t.finish", "	if ctx.Err() != nil {\n		return nil, err\n	}\n	return t.finish",
		[]invariant{wrongBytes},
	},
}
