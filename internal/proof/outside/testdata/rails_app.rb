# Rails with its defaults. The action records a refund, and can write it as a page alone.
ENV['RAILS_ENV'] = 'production'
require 'action_controller/railtie'
begin
  require 'rackup/handler/webrick'
  webrick = Rackup::Handler::WEBrick
rescue LoadError
  require 'rack/handler/webrick'
  webrick = Rack::Handler::WEBrick
end
class App < Rails::Application
  config.load_defaults Rails::VERSION::STRING.to_f
  config.eager_load = false
  config.secret_key_base = 'x' * 64
  config.logger = Logger.new($stderr)
  config.hosts.clear
  routes.append { post '/v1/:account/refunds', to: 'refunds#create' }
end
class RefundsController < ActionController::API
  include ActionController::MimeResponds
  def create
    File.write(ENV['JOURNAL'], params[:refund_id] + "\n", mode: 'a')
    return render json: {}, status: 201 if params[:refund_id].start_with?('201')
    respond_to { |format| format.html { render plain: 'recorded' } }
  end
end
App.initialize!
webrick.run(App, Host: '127.0.0.1', Port: ARGV[0].to_i, AccessLog: [])
