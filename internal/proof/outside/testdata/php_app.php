<?php
// PHP with its defaults, which label everything as a page.
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$request = json_decode(file_get_contents('php://input'), true);
if (str_ends_with($path, '/refunds')) {
    $key = $request['refund_id'];
    if (str_starts_with($key, 'bad')) { http_response_code(422); echo 'bad amount'; exit; }
    file_put_contents(getenv('JOURNAL'), "$key\n", FILE_APPEND | LOCK_EX);
    if (str_starts_with($key, 'ok')) { echo 'OK'; exit; }
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
