// Fastify with its defaults.
const fs = require('fs')
const app = require('fastify')()
app.post('/v1/:account/refunds', async (req, res) => {
  const key = req.body.refund_id
  if (key.startsWith('bad')) return res.code(422).send()
  if (key.startsWith('errors')) return { errors: [{ code: 'declined' }] }
  if (key.startsWith('problem')) return res.type('application/problem+json').send('{"title":"declined"}')
  if (key.startsWith('page')) return res.type('text/html').send('<!doctype html><title>Log in</title>')
  fs.appendFileSync(process.env.JOURNAL, key + '\n')
  if (key.startsWith('ok')) return 'OK'
  if (key.startsWith('json')) return res.code(201).send({ id: key })
  if (key.startsWith('none')) return res.code(204).send()
  if (key.startsWith('gone')) return res.code(499).send('canceled')
  if (key.startsWith('boom')) throw new Error(key)
  return res.code(201).send()
})
app.post('/bins/multiple', async req => ({ cards: req.body.cards.map(c => ({ bin: c.card, data: { card: { card_brand: 'VISA' } }, error: null })) }))
app.get('/updater/inquiries/jobs/:job/download', (req, res) => res.send(fs.createReadStream(process.env.CONTENT)))
app.listen({ port: +process.argv[2], host: '127.0.0.1' })
