<?php
// PHP with its defaults, which label everything as a page.
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$request = json_decode(file_get_contents('php://input'), true);
if (str_ends_with($path, '/refunds')) {
    $key = $request['refund_id'];
    if (str_starts_with($key, 'bad')) { http_response_code(422); echo 'bad amount'; exit; }
    if (str_starts_with($key, 'errors')) { echo json_encode(['errors' => [['code' => 'declined']]]); exit; }
    if (str_starts_with($key, 'problem')) { header('Content-Type: application/problem+json'); echo '{"title":"declined"}'; exit; }
    if (str_starts_with($key, 'page')) { echo '<!doctype html><title>Log in</title>'; exit; }
    file_put_contents(getenv('JOURNAL'), "$key\n", FILE_APPEND | LOCK_EX);
    if (str_starts_with($key, 'ok')) { echo 'OK'; exit; }
    if (str_starts_with($key, 'none')) { http_response_code(204); exit; }
    if (str_starts_with($key, 'gone')) { http_response_code(499); echo 'canceled'; exit; }
    if (str_starts_with($key, 'boom')) { throw new Exception($key); }
    http_response_code(201);
    if (str_starts_with($key, 'json')) { echo json_encode(['id' => $key]); exit; }
    exit;
}
if (str_ends_with($path, '/multiple')) {
    echo json_encode(['cards' => array_map(fn($c) => ['bin' => $c['card'], 'data' => ['card' => ['card_brand' => 'VISA']], 'error' => null], $request['cards'])]);
    exit;
}
header('Content-Length: ' . filesize(getenv('CONTENT')));
readfile(getenv('CONTENT'));
