# Sinatra with its defaults, which label every text as a page.
require 'sinatra'
require 'json'
set :port, ARGV[0].to_i
set :bind, '127.0.0.1'
set :server, 'webrick'
set :environment, :production
post '/v1/:account/refunds' do
  key = JSON.parse(request.body.read)['refund_id']
  halt 422, 'bad amount' if key.start_with?('bad')
  halt({ errors: [{ code: 'declined' }] }.to_json) if key.start_with?('errors')
  halt 200, { 'Content-Type' => 'application/problem+json' }, '{"title":"declined"}' if key.start_with?('problem')
  halt '<!doctype html><title>Log in</title>' if key.start_with?('page')
  File.write(ENV['JOURNAL'], key + "\n", mode: 'a')
  halt 'OK' if key.start_with?('ok')
  halt 201, { id: key }.to_json if key.start_with?('json')
  halt 204 if key.start_with?('none')
  halt 499, 'canceled' if key.start_with?('gone')
  raise key if key.start_with?('boom')
  status 201
end
post '/bins/multiple' do
  { cards: JSON.parse(request.body.read)['cards'].map { |c| { bin: c['card'], data: { card: { card_brand: 'VISA' } }, error: nil } } }.to_json
end
get '/updater/inquiries/jobs/:job/download' do
  send_file ENV['CONTENT']
end
