// Express with its defaults, whose handler records a refund and then tells another service of it. What
// axios throws has the other's status, and Express answers with that.
const express = require('express'), axios = require('axios'), fs = require('fs')
const app = express(), port = process.argv[2]
app.set('env', 'production')
app.use(express.json())
app.post('/v1/:account/refunds', async (req, res) => {
  const key = req.body.refund_id
  fs.appendFileSync(process.env.JOURNAL, key + '\n')
  await axios.get(`http://127.0.0.1:${port}/other/${key.split('_')[0]}`)
  res.status(201).json({ id: key })
})
app.get('/other/:status', (req, res) => res.sendStatus(Number(req.params.status)))
app.listen(port, '127.0.0.1')
