#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// stdio-http-bridge: exposes a stdio MCP server as a Streamable HTTP endpoint so that
// HTTP-only test suites (the MCP conformance suite) can drive it. No dependencies.
//
//   node stdio-http-bridge.mjs [--port N] [--port-file FILE] [--log FILE] [--isolate | --isolate-unclaimed] -- SERVER ARG...
//
// Two eras on one URL (http://127.0.0.1:N/mcp):
//  * legacy: an `initialize` POST without a modern `_meta` starts ONE child process per HTTP
//    session (Mcp-Session-Id). Messages pass unchanged, byte for byte as JSON values. Server
//    messages that belong to no open POST go to the session's GET stream.
//  * modern (2026-07-28): every POST carrying params._meta["io.modelcontextprotocol/protocolVersion"]
//    (and every other session-less POST) goes to one shared child (or, with --isolate, one child
//    per request; with --isolate-unclaimed, one throw-away child per POST that names no protocol
//    version, for servers that pin the era of a process on its first message). Request ids and progress tokens are rewritten to unique strings on the way in
//    and restored on the way out, because HTTP callers may reuse the same id concurrently.
// What the bridge itself decides (so passing those checks proves nothing about the server):
//   HTTP status codes, MCP-Protocol-Version / Mcp-Method / Mcp-Name header checks (-32020),
//   Host/Origin checks, session ids, disconnect => notifications/cancelled.
// Every line in both directions is appended to --log with a timestamp.
import http from 'node:http';
import fs from 'node:fs';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';

const argv = process.argv.slice(2);
let port = 0, portFile = null, logFile = null, isolate = false, isoUnclaimed = false, cmd = [];
while (argv.length) {
  const a = argv.shift();
  if (a === '--port-file') portFile = argv.shift();
  else if (a === '--port') port = Number(argv.shift());
  else if (a === '--log') logFile = argv.shift();
  else if (a === '--isolate') isolate = true;
  else if (a === '--isolate-unclaimed') isoUnclaimed = true;
  else if (a === '--') { cmd = argv.splice(0); }
  else { if (a !== '--help') console.error('unknown option ' + a); cmd = []; break; }
}
if (!cmd.length) { console.error('usage: stdio-http-bridge [--port N] [--log FILE] [--isolate | --isolate-unclaimed] -- CMD ARG...'); process.exit(2); }

const PV = 'io.modelcontextprotocol/protocolVersion', SUB = 'io.modelcontextprotocol/subscriptionId';
const log = (tag, s) => { if (logFile) fs.appendFileSync(logFile, `${new Date().toISOString()} ${tag} ${s}\n`); };
const children = new Set();
let violations = 0;

class Child {
  constructor(name) {
    this.name = name; this.onmessage = () => {}; this.onexit = () => {}; this.buf = Buffer.alloc(0); this.dead = false;
    this.p = spawn(cmd[0], cmd.slice(1), { stdio: ['pipe', 'pipe', 'pipe'] });
    children.add(this);
    this.p.stdout.on('data', d => {
      this.buf = Buffer.concat([this.buf, d]);
      for (let i; (i = this.buf.indexOf(10)) >= 0;) {
        const line = this.buf.subarray(0, i).toString('utf8'); this.buf = this.buf.subarray(i + 1);
        log(`${this.name} <`, line);
        let m; try { m = JSON.parse(line); } catch { violations++; console.error(`[bridge] NOT JSON on stdout: ${line.slice(0, 200)}`); continue; }
        this.onmessage(m);
      }
    });
    this.p.stderr.on('data', d => log(`${this.name} !`, d.toString().trimEnd()));
    this.p.stdin.on('error', () => {});
    this.p.on('error', e => { console.error('[bridge] spawn: ' + e.message); this.#gone(); });
    this.p.on('exit', () => this.#gone());
  }
  #gone() { if (this.dead) return; this.dead = true; children.delete(this); this.onexit(); }
  send(m) { const s = JSON.stringify(m); log(`${this.name} >`, s); this.p.stdin.write(s + '\n'); }
  close() { this.p.stdin.end(); const p = this.p; setTimeout(() => { if (!this.dead) p.kill('SIGKILL'); }, 3000).unref(); }
}

const sse = res => { if (!res.headersSent) { res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' }); res.flushHeaders(); } };
const event = (res, m) => { sse(res); res.write(`event: message\ndata: ${JSON.stringify(m)}\n\n`); };
const json = (res, status, body, headers = {}) => { if (res.headersSent) return; res.writeHead(status, { 'Content-Type': 'application/json', ...headers }); res.end(body === undefined ? undefined : JSON.stringify(body)); };
const rpcError = (id, code, message, data) => ({ jsonrpc: '2.0', id: id ?? null, error: { code, message, ...(data ? { data } : {}) } });
const isReq = m => m && typeof m === 'object' && typeof m.method === 'string' && m.id !== undefined;
const isResp = m => m && typeof m === 'object' && m.method === undefined && m.id !== undefined && (m.result !== undefined || m.error !== undefined);
const modernStatus = m => { const c = m.error?.code; if (c === undefined) return 200; if (c === -32601) return 404; if (c === -32603) return 500; return [-32700, -32600, -32602, -32020, -32021, -32022].includes(c) ? 400 : 200; };

// ---------- modern era: shared child, rewritten ids ----------
class Modern {
  constructor(name, once) { this.once = once; this.child = new Child(name); this.byId = new Map(); this.byTok = new Map(); this.child.onmessage = m => this.route(m); this.child.onexit = () => { for (const e of this.byId.values()) json(e.res, 502, rpcError(e.id, -32603, 'server exited')); this.byId.clear(); if (shared === this) shared = null; }; }
  request(m, res) {
    const key = 'b-' + randomUUID(), entry = { res, id: m.id, method: m.method };
    this.byId.set(key, entry);
    const out = structuredClone(m); out.id = key;
    const tok = out.params?._meta?.progressToken;
    if (tok !== undefined) { entry.tok = 't-' + key; out.params._meta.progressToken = entry.tok; this.byTok.set(entry.tok, { res, tok }); }
    res.on('close', () => { if (this.byId.has(key)) { this.done(key, entry); this.child.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: key, reason: 'client disconnected' } }); } });
    this.child.send(out);
  }
  done(key, e) { this.byId.delete(key); if (e.tok) this.byTok.delete(e.tok); if (this.once) this.child.close(); }
  route(m) {
    if (isResp(m)) {
      const e = this.byId.get(m.id);
      if (!e) { violations++; console.error('[bridge] response with unknown id ' + JSON.stringify(m.id)); return; }
      this.done(m.id, e);
      const back = structuredClone(m); back.id = e.id;
      if (back.result?._meta?.[SUB] !== undefined) back.result._meta[SUB] = e.id;
      if (e.res.headersSent) { event(e.res, back); e.res.end(); } else json(e.res, modernStatus(back), back);
      return;
    }
    const p = m.params ?? {};
    if (m.method === 'notifications/progress' && this.byTok.has(p.progressToken)) { const t = this.byTok.get(p.progressToken); return event(t.res, { ...m, params: { ...p, progressToken: t.tok } }); }
    const sub = p._meta?.[SUB];
    if (sub !== undefined && this.byId.has(sub)) { const e = this.byId.get(sub); return event(e.res, { ...m, params: { ...p, _meta: { ...p._meta, [SUB]: e.id } } }); }
    if (isReq(m)) { violations++; console.error('[bridge] server-to-client request in the modern era: ' + m.method); return; }
    if (m.method === 'notifications/message' && this.byId.size === 1) { const [e] = this.byId.values(); return event(e.res, m); }
    log('drop', JSON.stringify(m));
  }
}
let shared = null;

// ---------- legacy era: one child per session ----------
const sessions = new Map();
class Session {
  constructor() { this.id = randomUUID(); this.child = new Child('s-' + this.id.slice(0, 8)); this.pending = new Map(); this.tok = new Map(); this.get = null; this.queue = []; sessions.set(this.id, this); this.child.onmessage = m => this.route(m); this.child.onexit = () => { sessions.delete(this.id); for (const r of this.pending.values()) json(r, 502, rpcError(null, -32603, 'server exited')); this.get?.end(); }; }
  key(id) { return typeof id + ':' + id; }
  route(m) {
    if (Array.isArray(m)) { const f = m.find(isResp); const r = f && this.pending.get(this.key(f.id)); for (const x of m) if (isResp(x)) this.pending.delete(this.key(x.id)); if (r) json(r, 200, m, { 'Mcp-Session-Id': this.id }); return; }
    if (isResp(m)) {
      const k = this.key(m.id), r = this.pending.get(k);
      if (!r) { violations++; console.error('[bridge] response with unknown id ' + JSON.stringify(m.id)); return; }
      this.pending.delete(k);
      if (r.headersSent) { event(r, m); r.end(); } else json(r, 200, m, { 'Mcp-Session-Id': this.id });
      return;
    }
    let r = m.method === 'notifications/progress' ? this.tok.get(this.key(m.params?.progressToken)) : undefined;
    if (!r || r.writableEnded) r = m.method === 'notifications/progress' || isReq(m) || m.method === 'notifications/message' ? [...this.pending.values()].at(-1) : undefined;
    if (r && !r.writableEnded) return event(r, m);
    if (this.get) event(this.get, m); else this.queue.push(m);
  }
  post(body, res) {
    const list = Array.isArray(body) ? body : [body], reqs = list.filter(isReq);
    for (const q of reqs) { this.pending.set(this.key(q.id), res); const t = q.params?._meta?.progressToken; if (t !== undefined) this.tok.set(this.key(t), res); res.on('close', () => this.pending.delete(this.key(q.id))); }
    this.child.send(body);
    if (!reqs.length) json(res, 202);
  }
}

const srv = http.createServer((req, res) => {
  const host = (req.headers.host ?? '').replace(/:\d+$/, ''), ok = h => ['127.0.0.1', 'localhost', '[::1]'].includes(h);
  let oh = null; if (req.headers.origin) { try { oh = new URL(req.headers.origin).hostname; } catch { oh = '?'; } }
  if (!ok(host) || (oh !== null && !ok(oh))) return json(res, 403, rpcError(null, -32000, 'Host or Origin not allowed'));
  if (new URL(req.url, 'http://x').pathname !== '/mcp') return json(res, 404, { error: 'use /mcp' });
  const sid = req.headers['mcp-session-id'], s = sid ? sessions.get(sid) : undefined;
  if (req.method === 'DELETE') { if (!s) return json(res, 404, rpcError(null, -32001, 'no such session')); s.child.close(); sessions.delete(sid); return json(res, 200, {}); }
  if (req.method === 'GET') { if (!s) return json(res, sid ? 404 : 405, rpcError(null, -32000, 'no session')); s.get = res; sse(res); for (const m of s.queue.splice(0)) event(res, m); res.on('close', () => { if (s.get === res) s.get = null; }); return; }
  if (req.method !== 'POST') return json(res, 405, rpcError(null, -32000, 'method not allowed'));
  const chunks = []; req.on('data', c => chunks.push(c)); req.on('end', () => {
    let body; try { body = JSON.parse(Buffer.concat(chunks).toString('utf8')); } catch { return json(res, 400, rpcError(null, -32700, 'Parse error')); }
    if (sid) { if (!s) return json(res, 404, rpcError(body?.id, -32001, 'no such session')); return s.post(body, res); }
    const claim = body?.params?._meta?.[PV];
    if (body?.method === 'initialize' && claim === undefined && body?.params?._meta === undefined) { if (typeof body.params?.protocolVersion === 'string' && body.params.protocolVersion >= '2026-07-28' && req.headers['mcp-protocol-version'] === body.params.protocolVersion) {/* fall through to the modern child */} else return new Session().post(body, res); }
    const hv = req.headers['mcp-protocol-version'], hm = req.headers['mcp-method'], hn = req.headers['mcp-name'];
    const name = body?.method === 'resources/read' ? body?.params?.uri : ['tools/call', 'prompts/get'].includes(body?.method) ? body?.params?.name : undefined;
    if (claim !== undefined && hv !== claim) return json(res, 400, rpcError(body.id, -32020, `Header mismatch: MCP-Protocol-Version ${hv} != _meta ${claim}`));
    if (isReq(body) && claim !== undefined && (hm !== body.method || (name !== undefined && hn !== name && !/^=\?base64\?/.test(hn ?? '')))) return json(res, 400, rpcError(body.id, -32020, 'Header mismatch: Mcp-Method or Mcp-Name'));
    const once = isolate || (isoUnclaimed && claim === undefined);
    const m = once ? new Modern('m-' + randomUUID().slice(0, 8), true) : (shared ??= new Modern('m-shared', false));
    if (isReq(body)) m.request(body, res); else { m.child.send(body); json(res, 202); }
  });
});
srv.listen(port, '127.0.0.1', () => {
  if (portFile) { fs.writeFileSync(portFile + '.new', String(srv.address().port)); fs.renameSync(portFile + '.new', portFile); }
  console.error(`[bridge] http://127.0.0.1:${srv.address().port}/mcp`);
});
const stop = () => { console.error(`[bridge] stdout violations: ${violations}`); for (const c of children) c.p.kill(); process.exit(violations ? 1 : 0); };
process.on('SIGTERM', stop); process.on('SIGINT', stop);
