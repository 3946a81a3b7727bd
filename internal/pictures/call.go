package main

// drawCall draws the path of a call.
func drawCall() []byte {
	c := canvas{width: 880, height: 440,
		title: "The path of a call",
		about: "Your code calls Lookup, Submit or Download. The arguments are checked and the request is encoded once. " +
			"go-retryablehttp runs the retry loop: an attempt takes a token, waits for the rate limit, sends the request while counting " +
			"its bytes, and reads a bounded response. A policy decides by evidence and status whether another attempt follows after a wait. " +
			"The last response is decoded, and your code gets a typed result or a typed error."}

	c.box(20, 20, 210, 58, "Your code", "a typed request, a context")
	c.arrow("125,78 125,118")
	c.box(20, 120, 210, 100, "Lookup, Submit, …", "checks the arguments:", "a bad one sends nothing;", "encodes the request once")

	c.rect("frame", 270, 20, 460, 400)
	c.text("strong", 286, 45, "go-retryablehttp runs the retry loop")
	c.text("small quiet", 286, 65, "until the policy, the retry budget or the deadline ends it")
	c.arrow("230,150 300,150")
	c.box(302, 84, 344, 146, "An attempt",
		"asks your token source for a token",
		"waits for the service's pause and the rate limit",
		"sends the request, counting the bytes written",
		"reads a response of bounded size, or a stream",
		"logs an event, without ids or card numbers")
	c.bothWays("648,158 764,158")
	c.box(766, 138, 94, 40, "Service")

	c.arrow("440,230 440,278")
	c.text("small quiet", 452, 258, "evidence, status")
	c.box(302, 280, 344, 104, "The policy",
		"looks at the evidence and the status;",
		"repeats a lookup or download that may succeed,",
		"a refund only if nothing was recorded")
	c.path("646,332 690,332 690,206", "")
	c.arrow("690,206 648,206")
	c.text("small quiet", 660, 352, "again,")
	c.text("small quiet", 660, 370, "after")
	c.text("small quiet", 660, 388, "a wait")

	c.arrow("302,335 232,335")
	c.box(20, 290, 210, 98, "A result or an error", "the response, decoded, or", "an *Error: errors.Is,", "Condition, Retryable")
	c.path("10,335 20,335", "")
	c.arrow("10,335 10,50 18,50")
	return c.picture()
}
