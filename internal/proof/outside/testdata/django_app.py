# Django with its defaults.
import json, os, sys
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import FileResponse, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

settings.configure(ALLOWED_HOSTS=['*'], ROOT_URLCONF=__name__, SECRET_KEY='x', MIDDLEWARE=[
    'django.middleware.common.CommonMiddleware', 'django.middleware.gzip.GZipMiddleware', 'django.middleware.http.ConditionalGetMiddleware'])

@csrf_exempt
def refund(request, account):
    key = json.loads(request.body)['refund_id']
    if key.startswith('bad'):
        return HttpResponseBadRequest('bad amount')
    if key.startswith('errors'):
        return JsonResponse({'errors': [{'code': 'declined'}]})
    if key.startswith('problem'):
        return HttpResponse('{"title": "declined"}', content_type='application/problem+json')
    if key.startswith('page'):
        return HttpResponse('<!doctype html><title>Log in</title>')
    with open(os.environ['JOURNAL'], 'a') as journal:
        journal.write(key + '\n')
    if key.startswith('ok'):
        return HttpResponse('OK')
    if key.startswith('json'):
        return JsonResponse({'id': key}, status=201)
    if key.startswith('none'):
        return HttpResponse(status=204)
    if key.startswith('gone'):
        return HttpResponse('canceled', status=499)
    if key.startswith('boom'):
        raise RuntimeError(key)
    return HttpResponse(status=201)

@csrf_exempt
def lookup(request):
    return JsonResponse({'cards': [{'bin': c['card'], 'data': {'card': {'card_brand': 'VISA'}}, 'error': None} for c in json.loads(request.body)['cards']]})

def download(request, job):
    return FileResponse(open(os.environ['CONTENT'], 'rb'))

urlpatterns = [path('v1/<account>/refunds', refund), path('bins/multiple', lookup), path('updater/inquiries/jobs/<job>/download', download)]
execute_from_command_line(['x', 'runserver', '--noreload', '127.0.0.1:' + sys.argv[1]])
