package faults

// A target is a declaration that defects change: a function, a method or a
// table, found by its package. Renames are followed here.
type target struct{ dir, name string }

const (
	transportDir = "internal/transport"
	breakerDir   = "internal/breaker"
	binsDir      = "bins"
	refundsDir   = "refunds"
	updaterDir   = "updater"
)

// The names of the retry policy, whose rows are variables of a struct type.
const (
	rowType    = "verdict"
	rowRetries = "retries"
	rowOutcome = "outcome"
	often      = "unlimited"
)

var (
	// internal/transport
	refusedRequest = target{transportDir, "requestRefused"}
	callerLeft     = target{transportDir, "callerEnded"}
	failed500      = target{transportDir, "serverFailed"}
	failed503      = target{transportDir, "serverUnavailable"}
	failed408      = target{transportDir, "requestTimeout"}
	moved302       = target{transportDir, "redirectAsGet"}
	pageOfHTML     = target{transportDir, "htmlResponse"}
	cutOff         = target{transportDir, "truncatedResponse"}

	shouldRetry    = target{transportDir, "invocation.shouldRetry"}
	mayRetry       = target{transportDir, "invocation.mayRetry"}
	refreshToken   = target{transportDir, "invocation.refreshToken"}
	callResult     = target{transportDir, "invocation.result"}
	callFailure    = target{transportDir, "invocation.failure"}
	checkRedirect  = target{transportDir, "invocation.checkRedirect"}
	clientDo       = target{transportDir, "Client.Do"}
	sendAttempt    = target{transportDir, "invocation.send"}
	prepareAttempt = target{transportDir, "invocation.prepare"}
	receiveBody    = target{transportDir, "invocation.receive"}
	attemptReason  = target{transportDir, "attempt.reason"}
	readRetryAfter = target{transportDir, "attempt.retryAfter"}
	provesUnsent   = target{transportDir, "Evidence.unsent"}
	readStream     = target{transportDir, "stream.Read"}
	beginCooldown  = target{transportDir, "throttle.cooldown"}
	refillBudget   = target{transportDir, "budget.give"}

	askToken = target{transportDir, "credential.ask"}

	// internal/breaker
	probeDelay = target{breakerDir, "Breaker.Delay"}

	// bins
	decodeBody     = target{binsDir, "decodeSlowly"}
	askCache       = target{binsDir, "remoteCache.call"}
	separateNested = target{binsDir, "apart"}
	mayJoin        = target{binsDir, "canJoin"}
	correlateItems = target{binsDir, "correlate"}
	weighItems     = target{binsDir, "correlation.byEvidence"}
	bulkMaySend    = target{binsDir, "bulkRun.advance"}
	sendRequest    = target{binsDir, "Loader.send"}
	removeRequest  = target{binsDir, "Loader.remove"}
	runBulk        = target{binsDir, "bulkRun.run"}
	loadCard       = target{binsDir, "Loader.Load"}
	leaveRequest   = target{binsDir, "Loader.leave"}

	// refunds
	newSubmitAll   = target{refundsDir, "newBulk"}
	addRecord      = target{refundsDir, "bulkRun.add"}
	sendRecord     = target{refundsDir, "bulkRun.send"}
	maySendRecord  = target{refundsDir, "bulkRun.maySend"}
	receiveRecord  = target{refundsDir, "bulkRun.receive"}
	completeRecord = target{refundsDir, "bulkRun.complete"}
	abandonRecords = target{refundsDir, "bulkRun.abandon"}
	rethrowPanic   = target{refundsDir, "bulkRun.rethrow"}
	failRecord     = target{refundsDir, "encodedRefund.failure"}
	submissionOf   = target{refundsDir, "record.submission"}

	// updater
	admitResponse = target{updaterDir, "resumer.admit"}
	admitPart     = target{updaterDir, "resumer.admitPart"}
	readDownload  = target{updaterDir, "resumer.Read"}
	stopResuming  = target{updaterDir, "resumer.giveUp"}
	fetchFile     = target{updaterDir, "fileDownload.fetch"}
)
