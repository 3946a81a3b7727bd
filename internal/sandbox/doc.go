// Package sandbox imitates the Card Data Service. One HTTP handler serves batch BIN lookup,
// refund ingestion and account updater download. It records requests and injects faults.
//
// # Documented
//
// The interface states these, and the sandbox holds callers to them:
//
//   - POST /bins/multiple with a bearer credential, 1 to 50 elements in cards,
//     and the field names of the request and of the response.
//   - POST /v1/{account_id}/refunds without a credential.
//   - GET /updater/inquiries/jobs/{jobId}/download with a bearer credential and
//     x-merchant-id; errors as {"error": {"code", "message", "details"}}.
//   - Content-Type: application/json on both POST requests.
//   - The types of the members of both bodies. A member of another type is refused
//     with the member's path. Members that the interface does not have are
//     accepted, because it does not forbid them; [CheckBody] names them.
//
// openapi.json describes the same in a form that programs read, the sandbox included.
//
// # The sandbox's own choice
//
// These are not documented, so the real service may differ:
//
//   - Every status code: 200 for success, 400 for a body that the interface does
//     not allow, 401 without credential or merchant, 404 and 405 for another path
//     or method, 413 for a body above 1 MiB, 415 for another content type.
//   - The error object of the download endpoint as the error body of all three,
//     and every value in it, such as the code job_not_found. The body of a 416 is text.
//   - An identifier matches the longest BIN in the data set that it starts with, and its item
//     echoes that BIN. An unknown identifier echoes at most eight characters, with a null
//     data and the error "unknown bin". Items keep the order of the request. A repeated
//     identifier gets an item each time.
//   - "enhanced": true turns a null alm into false and a null
//     multi_account_access_indicator into "N".
//   - All card data, the contents of networkfees included. Issuers are invented.
//   - A refund is never compared with earlier ones, needs no member, and is
//     accepted with {}.
//   - Job 42 exists and is a CSV file. Its columns are invented. Downloads have
//     a strong ETag and support Range and If-Range, unless [Job] says otherwise.
package sandbox
