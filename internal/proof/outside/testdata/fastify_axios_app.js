// Fastify with its defaults, whose handler records a refund and then tells another service of it.
const fastify = require('fastify')(), axios = require('axios'), fs = require('fs')
const port = Number(process.argv[2])
fastify.post('/v1/:account/refunds', async (req, reply) => {
  const key = req.body.refund_id
  fs.appendFileSync(process.env.JOURNAL, key + '\n')
  await axios.get(`http://127.0.0.1:${port}/other/${key.split('_')[0]}`)
  return reply.code(201).send({ id: key })
})
fastify.get('/other/:status', (req, reply) => reply.code(Number(req.params.status)).send())
fastify.listen({ port, host: '127.0.0.1' })
