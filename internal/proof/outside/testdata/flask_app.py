# Flask with its defaults, which label every text as a page.
import os, sys
from flask import Flask, abort, jsonify, request, send_file

app = Flask(__name__)

@app.post('/v1/<account>/refunds')
def refund(account):
    key = request.get_json()['refund_id']
    if key.startswith('bad'):
        abort(422)
    if key.startswith('errors'):
        return {'errors': [{'code': 'declined'}]}
    if key.startswith('problem'):
        return {'title': 'declined'}, 200, {'Content-Type': 'application/problem+json'}
    if key.startswith('page'):
        return '<!doctype html><title>Log in</title>'
    with open(os.environ['JOURNAL'], 'a') as journal:
        journal.write(key + '\n')
    if key.startswith('ok'):
        return 'OK'
    if key.startswith('json'):
        return jsonify(id=key), 201
    if key.startswith('none'):
        return '', 204
    if key.startswith('gone'):
        return 'canceled', 499
    if key.startswith('boom'):
        raise RuntimeError(key)
    return '', 201

@app.post('/bins/multiple')
def lookup():
    return {'cards': [{'bin': c['card'], 'data': {'card': {'card_brand': 'VISA', 'bank': {'name': 'Zoë & Co'}}}, 'error': None} for c in request.get_json()['cards']]}

@app.get('/updater/inquiries/jobs/<job>/download')
def download(job):
    return send_file(os.environ['CONTENT'])

app.run(port=int(sys.argv[1]), threaded=True)
