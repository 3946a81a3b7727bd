// Package outside compares what the library says with the journals of services and gateways that
// others wrote: refunds behind nginx and haproxy, as they come and with a rate limit, refunds at
// Express and Fastify with axios, Rack and Rails, which answer with any status afterwards, and refunds,
// lookups and downloads at Flask, Django, PHP, Sinatra, Express and Fastify with their defaults,
// without faults, behind connections that are cut, killed meanwhile, and with a content that is
// replaced. It holds tests only, which run if CI_ALL is set and these programs are installed. NODE_PATH
// leads to the packages of npm:
//
//	CI_ALL=1 go test ./internal/proof/outside -v
package outside
