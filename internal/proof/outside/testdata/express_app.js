// Express with its defaults.
const express = require('express'), fs = require('fs')
const app = express()
app.use(express.json())
app.post('/v1/:account/refunds', (req, res) => {
  const key = req.body.refund_id
  if (key.startsWith('bad')) return res.sendStatus(422)
  fs.appendFileSync(process.env.JOURNAL, key + '\n')
  if (key.startsWith('ok')) return res.send('OK')
  if (key.startsWith('json')) return res.status(201).json({ id: key })
  if (key.startsWith('boom')) throw new Error(key)
  res.status(201).end()
})
app.post('/bins/multiple', (req, res) => res.json({ cards: req.body.cards.map(c => ({ bin: c.card, data: { card: { card_brand: 'VISA' } }, error: null })) }))
app.get('/updater/inquiries/jobs/:job/download', (req, res) => res.sendFile(process.env.CONTENT, { dotfiles: 'allow' }))
app.listen(process.argv[2], '127.0.0.1')
