#!/usr/bin/env python3
"""Extreme numbers in every place where somebody else names one: parameters, headers and bodies of CouchDB's wire, messages and frames of
BLIP, answers of a hostile server, redirects, queries, and options of the command line. No process may end by a signal, no listener may
stop answering, and no request may be answered with 500.

    Fuzzing/numbers.py .build/release/loveseat [--seconds 60] [--seed 1] [--only http,blip,server,query,cli]

Prints what broke, with the seed that repeats it; exits with 1 then."""
import argparse, base64, http.client, http.server, json, os, random, re, shutil, signal, socket, struct, subprocess, sys, tempfile
import threading, time, zlib

NUMBERS = ['0', '1', '-1', '2', '-0', '255', '256', '65535', '65536', '65537', '99999', '2147483647', '2147483648', '-2147483648',
           '-2147483649', '4294967295', '4294967296', '9007199254740993', '9223372036854775806', '9223372036854775807',
           '9223372036854775808', '-9223372036854775807', '-9223372036854775808', '-9223372036854775809', '18446744073709551614',
           '18446744073709551615', '18446744073709551616', '18446744073709551697', '340282366920938463463374607431768211456',
           '1e18', '9.223372036854775807e18', '9.3e18', '1e19', '-1e19', '1e308', '-1e308', '1e309', '0.5', '-0.5', '1e-308', '',
           '%2B5', '00', '0x10', '1_000', '1' * 30, '-' + '9' * 30, '9' * 400]

parser = argparse.ArgumentParser()
parser.add_argument('program'); parser.add_argument('--seconds', type=float, default=60); parser.add_argument('--seed', type=int, default=1)
parser.add_argument('--only', default='http,blip,server,query,cli')
options = parser.parse_args()
PROGRAM = os.path.realpath(shutil.which(options.program) or sys.exit('no such program: ' + options.program))
FOLDER = tempfile.mkdtemp(); os.chdir(FOLDER)
os.environ.update(SWIFT_BACKTRACE='enable=no', LOVESEAT_IDENTITIES=FOLDER + '/ids', LOVESEAT_PASSWORD='pw')
broken = []; tried = 0


WORST = ['9223372036854775807', '-9223372036854775808', '18446744073709551615', '65536', '4294967295', '1e308', '-1']


def number(r):
    kind = r.random()
    return r.choice(WORST) if kind < 0.4 else r.choice(NUMBERS) if kind < 0.9 else str(r.choice([-1, 1]) * (2 ** r.randrange(70) + r.randrange(-2, 3)))


def fill(r, text):
    """Puts numbers in the place of each N, and JSON numbers in the place of each J."""
    def json_number(_):
        text = number(r)
        return text if re.fullmatch(r'-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?', text) else '"%s"' % text
    return re.sub('§J', json_number, re.sub('§N', lambda _: number(r), text))


def misused(text):
    """A command that is refused because of its spelling tries nothing."""
    if re.search("Unknown option|Unexpected argument|Missing expected argument", text): sys.exit('this script is out of date: ' + text[:300])


def broke(kind, seed, what):
    broken.append((kind, seed)); print('BROKEN %s, seed %d: %s' % (kind, seed, what), flush=True)


def run(arguments, **more):
    try: return subprocess.run([PROGRAM] + arguments, capture_output=True, text=True, errors='replace', timeout=30, **more)
    except subprocess.TimeoutExpired: return None


class Listener:
    def __init__(self):
        self.process = None
        run(['put', 'a', 'A1', '{}']); run(['put', 'a', 'd', '{"n":1,"tags":[1,2],"t":"2020-01-01"}']); run(['put', 'a', 'e', '{"n":-5}'])
        with open('file', 'wb') as file: file.write(b'x' * 1000)
        run(['blob', 'put', 'a', 'd', 'blob', 'file'])

    def start(self):
        self.process = subprocess.Popen([PROGRAM, 'serve', 'a', '--no-tls', '--interface', '127.0.0.1', '--couchdb', '--couchdb-create',
                                         '--replicate-with', '127.0.0.1', '--quiet'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(re.search(r':(\d+)/', self.process.stdout.readline()).group(1))

    def check(self, kind, seed, what):
        time.sleep(0)
        if self.process.poll() is None: return
        broke(kind, seed, 'the listener ended with %d after %s' % (self.process.returncode, what)); self.start()

    def stop(self):
        if self.process: self.process.terminate(); self.process.wait()


REVISION = '"§N-a"'
HTTP = [
    ('GET', '/a/_all_docs?skip=§N&limit=§N&startkey="B"', ''), ('GET', '/a/_all_docs?skip=§N&descending=true&endkey="B"', ''),
    ('GET', '/a/_all_docs?startkey=§N&endkey=§N&skip=§N', ''), ('GET', '/a/_design_docs?skip=§N&limit=§N', ''),
    ('GET', '/a/_local_docs?skip=§N&limit=§N', ''), ('GET', '/_all_dbs?skip=§N&limit=§N', ''), ('GET', '/_uuids?count=§N', ''),
    ('POST', '/a/_all_docs', '{"keys":["d",§J],"skip":§J,"limit":§J}'), ('POST', '/a/_all_docs?skip=§N', '{"start_key":"B","limit":§J}'),
    ('POST', '/a/_all_docs/queries', '{"queries":[{"skip":§J,"start_key":"B"},{"limit":§J,"skip":§J}]}'),
    ('GET', '/a/_changes?since=§N&limit=§N&timeout=1&heartbeat=false', ''), ('GET', '/a/_changes?descending=true&limit=§N&since=§N', ''),
    ('GET', '/a/_changes?feed=longpoll&since=§N&timeout=§N&heartbeat=false', 'short'),
    ('GET', '/a/_changes?feed=continuous&since=§N&timeout=1&heartbeat=false&limit=§N', 'short'),
    ('GET', '/a/_changes?feed=longpoll&since=now&heartbeat=§N&timeout=1', 'short'),
    ('POST', '/a/_changes?filter=_selector&since=§N', '{"selector":{"n":{"$gt":§J}}}'),
    ('GET', '/a/d?rev=§N-a', ''), ('GET', '/a/d?open_revs=["§N-a","§N-b"]&revs=true&latest=true', ''), ('GET', '/a/d?atts_since=["§N-a"]&attachments=true', ''),
    ('PUT', '/a/x?rev=§N-a', '{"n":§J}'), ('PUT', '/a/x?new_edits=false', '{"_rev":"§N-a","n":§J}'),
    ('PUT', '/a/x?new_edits=false', '{"_revisions":{"start":§J,"ids":["b","a"]}}'), ('DELETE', '/a/x?rev=§N-a', ''),
    ('POST', '/a/_bulk_docs', '{"docs":[{"_id":"x","_rev":"§N-a"},{"_id":"y","_revisions":{"start":§J,"ids":["a","b"]}}],"new_edits":false}'),
    ('POST', '/a/_bulk_docs', '{"docs":[{"_id":"x","n":§J,"_attachments":{"f":{"data":"aGk=","length":§J,"revpos":§J,"encoded_length":§J}}}]}'),
    ('POST', '/a/_bulk_docs', '{"docs":[{"_id":"z","_attachments":{"f":{"stub":true,"digest":"sha1-a","length":§J,"revpos":§J}}}]}'),
    ('POST', '/a/_bulk_get?revs=true', '{"docs":[{"id":"d","rev":"§N-a","atts_since":["§N-b"]},{"id":"d"}]}'),
    ('POST', '/a/_revs_diff', '{"d":["§N-a","§N-b"]}'), ('POST', '/a/_missing_revs', '{"d":["§N-a"]}'), ('POST', '/a/_purge', '{"x":["§N-a"]}'),
    ('PUT', '/a/_revs_limit', '§J'), ('PUT', '/a/_local/l', '{"_rev":"0-§N","n":§J}'), ('PUT', '/a/_purged_infos_limit', '§J'),
    ('POST', '/a/_find', '{"selector":{"n":{"$gt":§J}},"limit":§J,"skip":§J}'), ('POST', '/a/_find', '{"selector":{"n":{"$mod":[§J,§J]}}}'),
    ('POST', '/a/_find', '{"selector":{"tags":{"$size":§J}},"sort":["n"],"bookmark":"§N"}'), ('POST', '/a/_explain', '{"selector":{"n":{"$in":[§J]}},"skip":§J}'),
    ('POST', '/a/_find', '{"selector":{"t":{"$regex":"a{§N,§N}"}},"r":§J}'),
    ('POST', '/a/_index', '{"index":{"fields":["n"],"partial_filter_selector":{"n":{"$gt":§J}}},"name":"i"}'),
    ('GET', '/a/_index?limit=§N&skip=§N', ''),
    ('POST', '/_replicate', '{"source":"http://127.0.0.1:§N/x","target":"a","since_seq":§J}'),
    ('POST', '/_replicate', '{"source":"a","target":"b","create_target":true,"since_seq":§J,"checkpoint_interval":§J,"worker_processes":§J}'),
    ('GET', '/a/d/blob_%2Fblob', 'Range: bytes=§N-§N'), ('GET', '/a/d/blob_%2Fblob', 'Range: bytes=-§N'), ('GET', '/a/d/blob_%2Fblob', 'Range: bytes=§N-'),
    ('PUT', '/a/y', 'Content-Length: §N'), ('POST', '/a/_bulk_docs', 'Content-Length: §N'), ('PUT', '/a/y/f', 'Content-Length: §N'),
    ('PUT', '/a/y/f?rev=§N-a', 'If-Match: "§N-a"'), ('COPY', '/a/d', 'Destination: y?rev=§N-a'), ('GET', '/a/d', 'If-None-Match: "§N-a"'),
    ('GET', '/a/d', 'Cookie: AuthSession=§N'), ('GET', '/a/d', 'Last-Event-ID: §N'), ('POST', '/a/_ensure_full_commit?seq=§N', ''),
    ('PUT', '/a/m?new_edits=false', 'multipart'), ('POST', '/_dbs_info', '{"keys":["a",§J]}'), ('GET', '/a/_changes?style=all_docs&seq_interval=§N&limit=§N', ''),
]
MULTIPART = ('--b\r\nContent-Type: application/json\r\n\r\n{"_rev":"§N-a","_attachments":{"f":{"follows":true,"length":§J,"encoded_length":§J,"revpos":§J,'
             '"encoding":"gzip"}}}\r\n--b\r\nContent-Disposition: attachment; filename="f"\r\nContent-Length: §N\r\n\r\nhello\r\n--b--')


def fuzz_http(r, seed):
    method, path, more = r.choice(HTTP)
    path = fill(r, path).replace('"', '%22').replace(' ', '')
    headers = {'Host': '127.0.0.1:%d' % listener.port, 'Connection': 'close'}; body = None; is_short = more == 'short'
    if more == 'multipart': headers['Content-Type'] = 'multipart/related; boundary=b'; body = fill(r, MULTIPART)
    elif ': ' in more and not more.startswith('{'):
        name, value = fill(r, more).split(': ', 1); headers[name] = value
        if method in ('PUT', 'POST'): body = '{"n":1}'; headers['Content-Type'] = 'application/json'
    elif more and not is_short: headers['Content-Type'] = 'application/json'; body = fill(r, more)
    if body is not None and 'Content-Length' not in headers: headers['Content-Length'] = str(len(body))
    request = '%s %s HTTP/1.1\r\n' % (method, path) + ''.join('%s: %s\r\n' % h for h in headers.items()) + '\r\n' + (body or '')
    what = request[:600].replace('\r\n', ' | '); s = socket.socket()
    try:
        s = socket.create_connection(('127.0.0.1', listener.port), 5); s.settimeout(0.2 if is_short or 'Content-Length' in more or more == 'multipart' else 8); s.sendall(request.encode())
        answer = s.recv(65536)
        if answer.startswith(b'HTTP/1.1 500'): broke('http', seed, '500 to %s: %s' % (what, answer[-200:]))
    except socket.timeout:
        if not is_short and 'Content-Length: ' not in more and 'Content-Length' in headers and len(body or '') == int(headers['Content-Length']):
            broke('http', seed, 'no answer to ' + what)
    except OSError: pass
    finally: s.close()
    listener.check('http', seed, what)


def variable(n):
    n &= (1 << 70) - 1; out = b''
    while n >= 128: out += bytes([n & 127 | 128]); n >>= 7
    return out + bytes([n])


PROPERTIES = {
    'getCheckpoint': ['client=cp-§N'], 'setCheckpoint': ['client=cp', 'rev=§N-a'], 'subChanges': ['since=§N', 'batch=§N', 'continuous=true', 'versioning=§N', 'future=§N'],
    'changes': ['collection=§N'], 'proposeChanges': ['collection=§N', 'conflictIncludesRev=true'], 'norev': ['id=d', 'rev=§N-a', 'error=§N', 'sequence=§N'],
    'rev': ['id=r', 'rev=§N-a', 'sequence=§N', 'history=§N-b,§N-c', 'deleted=§N', 'deltaSrc=§N-a', 'collection=§N', 'noconflicts=true', 'loveseat_tree=§N', 'loveseat_offset=§N'],
    'getAttachment': ['digest=sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=', 'docID=d', 'collection=§N', 'loveseat_offset=§N', 'offset=§N', 'compress=true'],
    'proveAttachment': ['digest=sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk='], 'getCollections': [], 'unsubChanges': ['collection=§N'],
}
BODIES = ['[[§J,"d","§N-a",§J,§J],[§J,"r","§N-b"]]', '[["d","§N-a","§N-b",§J],["q","1-a"]]', '{"n":§J,"local":§J,"localCompleted":[§J,§J],"remote":§J}', '[§J,§J]',
          '{"collections":["_default"],"checkpoint_ids":["x"],"n":§J}', '{"_attachments":{"f":{"stub":true,"digest":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=","length":§J,"revpos":§J}}}',
          '{"b":{"@type":"blob","digest":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=","length":§J}}', '{"lines":[["§N-a"]],"current":"§N-a"}', '']


def fuzz_blip(r, seed):
    what = []
    try:
        s = socket.create_connection(('127.0.0.1', listener.port), 5); s.settimeout(2)
        s.sendall(('GET /a/_blipsync HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
                   'Sec-WebSocket-Key: AAECAwQFBgcICQoLDA0ODw==\r\nSec-WebSocket-Protocol: BLIP_3+CBMobile_3\r\n\r\n' % listener.port).encode())
        s.recv(4096); crc = 0
        for count in range(1, r.randrange(2, 10)):
            profile = r.choice(list(PROPERTIES)); pairs = [p for p in PROPERTIES[profile] if r.random() < 0.8]
            text = ''.join(fill(r, p).replace('=', '\0', 1) + '\0' for p in ['Profile=' + profile] + pairs).encode()
            body = fill(r, r.choice(BODIES)).encode(); length = len(text)
            message = variable(length if r.random() < 0.9 else r.getrandbits(r.randrange(1, 70))) + text + body
            kind = r.random(); what.append('%s %s %s' % (profile, text[:200], body[:200]))
            if kind < 0.8: crc = zlib.crc32(message, crc); frame = bytes([count, 0]) + message + struct.pack('>I', crc)
            elif kind < 0.9: n = r.getrandbits(r.randrange(1, 70)); frame = variable(n) + bytes([r.choice([4, 5, 0x14, 0x15])]) + variable(r.getrandbits(r.randrange(1, 70)))
            else: n = r.getrandbits(r.randrange(1, 70)); frame = variable(n) + bytes([r.randrange(256)]) + message
            head = bytes([0x82, 128 | len(frame)]) if len(frame) < 126 else bytes([0x82, 254]) + struct.pack('>H', len(frame))
            if r.random() < 0.03: head = bytes([0x82, 255]) + struct.pack('>Q', r.choice([2 ** 63 - 1, 2 ** 63, 2 ** 64 - 1, 2 ** 32, 2 ** 31]))
            s.sendall(head + bytes(4) + frame)
        time.sleep(0.01); s.close()
    except OSError: pass
    listener.check('blip', seed, '; '.join(what))


class Hostile(http.server.BaseHTTPRequestHandler):
    """A CouchDB that names extreme numbers."""
    protocol_version = 'HTTP/1.1'; random = None

    def log_message(self, *_): pass

    def handle(self):
        try: super().handle()
        except OSError: pass

    def do_GET(self):
        r = Hostile.random; length = int(self.headers.get('Content-Length') or 0); self.rfile.read(length)
        headers, status = {}, 200; path = self.path.split('?')[0]
        if r.random() < 0.04: status = r.choice([301, 302, 307, 308]); headers['Location'] = fill(r, 'http://127.0.0.1:§N/x')
        elif r.random() < 0.04: status = r.choice([429, 503]); headers['Retry-After'] = r.choice(['0', '0', '-1', '1e9', 'Sun, 06 Nov 9999999999 08:49:37 GMT', '00'])
        if r.random() < 0.3: headers['Set-Cookie'] = fill(r, 'AuthSession=a; Max-Age=§N; Expires=Sun, 06 Nov §N 08:49:37 GMT; Version=§N')
        if path == '/': body = '{"couchdb":"Welcome","uuid":"§N","version":"§N"}'
        elif '_changes' in path:
            rows = ','.join('{"seq":%s,"id":"d%d","changes":[{"rev":"§N-a"}]}' % (r.choice(['§J', '"§N-x"', '%d' % i]), i) for i in range(r.randrange(5)))
            body = '{"results":[%s],"last_seq":%s,"pending":§J}' % (rows, r.choice(['§J', '"§N-x"']))
        elif '_bulk_get' in path or '_revs_diff' in path or '_bulk_docs' in path:
            body = r.choice(['{"results":[{"id":"d0","docs":[{"ok":{"_id":"d0","_rev":"§N-a","_revisions":{"start":§J,"ids":["a","b"]},"n":§J}}]}]}',
                             '{"d":{"missing":["§N-a"],"possible_ancestors":["§N-b"]}}', '[{"ok":true,"id":"d","rev":"§N-a"}]', '{"results":[]}'])
        elif '_local' in path: body = '{"_id":"_local/x","_rev":"0-§N","last_sequence":§J,"source_last_seq":§J,"history":[{"recorded_seq":§J,"session_id":"a"}],"session_id":"a"}'
        elif path.count('/') >= 2 and not path.endswith('/'):
            body = '{"_id":"d0","_rev":"§N-a","_revisions":{"start":§J,"ids":["a"]},"_attachments":{"f":{"stub":true,"digest":"md5-a","length":§J,"revpos":§J,"encoded_length":§J}},"n":§J}'
        else: body = '{"db_name":"x","doc_count":§J,"update_seq":§J,"purge_seq":§J,"instance_start_time":"§N","committed_update_seq":§J,"disk_format_version":§J}'
        body = fill(r, body).encode()
        try:
            self.send_response(status)
            for pair in headers.items(): self.send_header(*pair)
            self.send_header('Content-Type', 'application/json'); self.send_header('Content-Length', str(len(body)) if r.random() < 0.95 else number(r))
            self.end_headers(); self.wfile.write(body)
        except OSError: pass
        if r.random() < 0.3: self.close_connection = True
    do_PUT = do_POST = do_HEAD = do_DELETE = do_GET


def fuzz_server(r, seed):
    Hostile.random = r
    command = r.choice(['pull', 'pull', 'push', 'sync'])
    if not os.path.exists('s.loveseat'): run(['put', 's', 'd', '{}'])
    url = 'http://127.0.0.1:%d/x' % hostile.server_port if r.random() < 0.9 else fill(r, '%s://127.0.0.1:§N/x' % r.choice(['http', 'https', 'ws', 'wss']))
    try: result = subprocess.run([PROGRAM, command, 's', url, '--max-attempts', '1'], capture_output=True, text=True, errors='replace', timeout=4)
    except subprocess.TimeoutExpired: return
    misused(result.stderr)
    if result.returncode < 0 or result.returncode == 70: broke('server', seed, '%s %s ends with %d: %s' % (command, url, result.returncode, result.stderr[-300:]))


FUNCTIONS = ('ABS CEIL FLOOR ROUND TRUNC SQRT EXP LN LOG POWER SIGN DEGREES RADIANS SIN COS TAN ATAN ATAN2 DIV IDIV MILLIS_TO_STR MILLIS_TO_UTC MILLIS_TO_TZ STR_TO_MILLIS '
             'DATE_ADD_MILLIS DATE_ADD_STR DATE_DIFF_MILLIS DATE_DIFF_STR LENGTH UPPER CONTAINS TOSTRING TONUMBER ARRAY_LENGTH ARRAY_SUM ARRAY_AVG ROUND_EVEN BITAND '
             'REGEXP_LIKE REGEXP_POSITION GREATEST LEAST IFNULL ISNUMBER').split()


def expression(r, depth):
    if depth == 0:
        n = number(r); n = n if re.fullmatch(r'-?\d+(\.\d+)?(e\d+)?', n) else '7'
        return r.choice([n, 'n', 'tags[%s]' % (n if re.fullmatch(r'-?\d{1,25}', n) else '0'), "'%s'" % n, "'2020-01-01'", 't', 'null', 'META().sequence'])
    one, two = expression(r, depth - 1), expression(r, depth - 1)
    part = r.choice(["'day'", "'month'", "'year'", "'millisecond'", "'century'", "'week'", "'quarter'"])
    kind = r.randrange(6)
    if kind == 0: return '(%s %s %s)' % (one, r.choice(['+', '-', '*', '/', '%', '<', '=', '||', 'BETWEEN 1 AND']), two)
    if kind == 1: return '(-%s)' % one if not one.startswith('-') else one
    name = r.choice(FUNCTIONS)
    count = {'DATE_ADD_MILLIS': 3, 'DATE_ADD_STR': 3, 'DATE_DIFF_MILLIS': 3, 'DATE_DIFF_STR': 3}.get(name)
    if count: return '%s(%s, %s, %s)' % (name, one, two, part)
    return '%s(%s)' % (name, one if r.random() < 0.6 else one + ', ' + two)


def fuzz_query(r, seed):
    query = 'SELECT %s AS x FROM _' % expression(r, r.randrange(1, 4))
    if r.random() < 0.3: query = 'SELECT %s AS x, tags FROM _ UNNEST tags' % expression(r, 1)
    if r.random() < 0.4: query += ' WHERE ' + expression(r, 2)
    if r.random() < 0.3: query += ' ORDER BY ' + expression(r, 1)
    if r.random() < 0.6: query += ' LIMIT ' + expression(r, r.randrange(2))
    if r.random() < 0.6: query += ' OFFSET ' + expression(r, r.randrange(2))
    # On a busy machine, a process may get no turn for half a minute.
    result = run(['query', 'a', query]) or run(['query', 'a', query])
    if result is None: broke('query', seed, 'no end: ' + query)
    elif result.returncode < 0 or result.returncode == 70: broke('query', seed, '%d: %s: %s' % (result.returncode, query, result.stderr[-300:]))


COMMANDS = [['ls', 'a', '--limit', '§N'], ['changes', 'a', '--since', '§N'], ['get', 'a', 'd', '--rev', '§N-a'], ['put', 'a', 'y', '{"n":§J}', '--rev', '§N-a'],
            ['set', 'a', 'd', 'n=§N'], ['set', 'a', 'd', 'tags[§N]=1'], ['put', 'a', 'd', '{"n":§J}'], ['resolve', 'a', 'd', '--keep', '§N-a'],
            ['push', 'a', 'ws://127.0.0.1:§N/x'], ['pull', 'a', 'http://127.0.0.1:§N/x'], ['push', 'a', 'wss://[::1]:§N/x'], ['pull', 'a', 'https://127.0.0.1:§N/x'],
            ['pull', 'a', 'ws://127.0.0.1:1/x', '--max-attempts', '§N', '--max-wait', '§N'], ['push', 'a', 'ws://127.0.0.1:1/x', '--proxy', 'http://127.0.0.1:§N'],
            ['push', 'a', 'ws://127.0.0.1:1/x', '--heartbeat', '§N', '--max-attempts', '1'], ['pull', 'a', 'ws://127.0.0.1:1/x', '--filter', 'n >= §N', '--max-attempts', '1'],
            ['query', 'a', 'SELECT $x + 1 FROM _ LIMIT $y', '--param', 'x=§N', '--param', 'y=§N'], ['query', 'a', 'SELECT tags[$x] FROM _ OFFSET $y', '--param', 'x=§N', '--param', 'y=§N'],
            ['serve', 'a', '--port', '§N', '--interface', '127.0.0.1'], ['inspect', 'a', '--port', '§N'], ['pair', 'show', 'a', '--port', '§N'],
            ['pair', 'use', 'a', '123456', 'wss://127.0.0.1:§N/x'], ['pair', 'use', 'a', 'loveseat-pair:1?u=wss://127.0.0.1:§N/b&p=' + 'a' * 64 + '&s=x'],
            ['import', 'a', '--from-couchdb', 'http://127.0.0.1:§N/x'], ['serve', 'a', '--couchdb', '--replicate-with', '127.0.0.1:§N', '--interface', '127.0.0.1'],
            ['serve', 'a', '--couchdb', '--couchdb-port', '§N', '--interface', '127.0.0.1'], ['index', 'create', 'a', 'i§N', 'tags[§N]']]


def fuzz_cli(r, seed):
    arguments = [fill(r, a) for a in r.choice(COMMANDS)]
    waits = arguments[0] in ('serve', 'inspect', 'browse', 'pair') or '--max-attempts' in arguments
    try: result = subprocess.run([PROGRAM] + arguments, capture_output=True, text=True, errors='replace', timeout=1 if waits else 20, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        if not waits: broke('cli', seed, 'no end: %s' % arguments)
        return
    misused(result.stderr)
    if result.returncode < 0 or result.returncode == 70: broke('cli', seed, '%s ends with %d: %s' % (arguments, result.returncode, result.stderr[-300:]))


listener = Listener()
hostile = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Hostile); threading.Thread(target=hostile.serve_forever, daemon=True).start()
kinds = {'http': (fuzz_http, 30), 'blip': (fuzz_blip, 15), 'server': (fuzz_server, 3), 'query': (fuzz_query, 3), 'cli': (fuzz_cli, 1)}
chosen = [k for k in options.only.split(',') if k in kinds] or sys.exit('--only takes ' + ','.join(kinds))
# The command line needs a database that no listener has open.
os.makedirs('cli', exist_ok=True); end = time.monotonic() + options.seconds; seed = options.seed * 1_000_000; counts = dict.fromkeys(chosen, 0)
shutil.copytree('a.loveseat', 'cli/a.loveseat')
if {'http', 'blip'} & set(chosen): listener.start()
while time.monotonic() < end and len(broken) < 20:
    for kind in chosen:
        fuzz, times = kinds[kind]
        if kind in ('query', 'cli'): os.chdir(FOLDER + '/cli')
        for _ in range(times):
            seed += 1; counts[kind] += 1; fuzz(random.Random(seed), seed)
            if time.monotonic() > end: break
        os.chdir(FOLDER)
listener.stop(); shutil.rmtree(FOLDER, ignore_errors=True)
print('%s; %d broken' % (', '.join('%d %s' % (n, k) for k, n in counts.items()), len(broken)))
sys.exit(len(broken) > 0)
