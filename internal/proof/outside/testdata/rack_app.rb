# An application of Rack that records a refund, and finds out afterwards that it cannot write what the
# client accepts.
require 'rack'
require 'json'
begin
  require 'rackup/handler/webrick'
  webrick = Rackup::Handler::WEBrick
rescue LoadError
  require 'rack/handler/webrick'
  webrick = Rack::Handler::WEBrick
end
app = lambda do |env|
  key = JSON.parse(env['rack.input'].read)['refund_id']
  File.write(ENV['JOURNAL'], key + "\n", mode: 'a')
  status = key.split('_')[0].to_i
  [status, { 'content-type' => 'text/plain' }, [Rack::Utils::HTTP_STATUS_CODES[status]]]
end
webrick.run(app, Host: '127.0.0.1', Port: ARGV[0].to_i, AccessLog: [])
