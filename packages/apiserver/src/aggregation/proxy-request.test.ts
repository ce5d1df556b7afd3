import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApiRequest, NEVER, NO_BYTES } from '../../../runtime/src/http/seam.ts';
import { forwardedRequest, forwardedResponse, remoteUserHeaders } from './proxy-request.ts';

const request = (headers: Record<string, string>, address = ''): ApiRequest => ({
  method: 'GET',
  path: '/apis/g/v1/things',
  query: 'watch=1',
  headers,
  body: NO_BYTES,
  peer: { address },
  signal: NEVER,
});
const user = { username: 'jane', groups: ['a', 'b, c'] };

test('remoteUserHeaders() gives each group and value a field of its own, and escapes keys', () => {
  assert.deepEqual(remoteUserHeaders({ ...user, uid: 'u', extra: { 'example.com/Key %': ['1', '2'] } }), [
    ['x-remote-user', 'jane'],
    ['x-remote-uid', 'u'],
    ['x-remote-group', 'a'],
    ['x-remote-group', 'b, c'],
    ['x-remote-extra-example.com%2fkey%20%25', '1'],
    ['x-remote-extra-example.com%2fkey%20%25', '2'],
  ]);
});

test('forwardedRequest() takes out what proves or claims who somebody is, and what belongs to one connection', () => {
  const sent = forwardedRequest(
    request({
      ':authority': 'front',
      host: 'front',
      authorization: 'Bearer x',
      'x-remote-user': 'admin',
      'x-remote-extra-a': 'b',
      'impersonate-user': 'admin',
      connection: 'upgrade',
      upgrade: 'websocket',
      'transfer-encoding': 'chunked',
      'content-length': '3',
      accept: 'application/json',
      'sec-websocket-protocol': 'base64url.bearer.authorization.k8s.io.eA',
    }),
    { user, auditId: 'id' },
  );
  assert.deepEqual(sent.headers, {
    accept: 'application/json',
    'audit-id': 'id',
    'x-remote-user': 'jane',
    'x-remote-group': 'a, b, c',
  });
  assert.deepEqual([sent.method, sent.path, sent.query], ['GET', '/apis/g/v1/things', 'watch=1']);
});

test('forwardedRequest() says for whom it asks', () => {
  const address = (headers: Record<string, string>, from: string) =>
    forwardedRequest(request(headers, from), { user }).headers['x-forwarded-for'];
  assert.equal(address({}, '10.0.0.1'), '10.0.0.1');
  assert.equal(address({ 'x-forwarded-for': '10.0.0.9' }, '10.0.0.1'), '10.0.0.9, 10.0.0.1');
});

test('forwardedResponse() keeps status and headers of the far end but for those of its connection', () => {
  const { status, headers } = forwardedResponse({
    status: 201,
    headers: {
      'content-type': 'a/b',
      etag: '"1"',
      'transfer-encoding': 'chunked',
      'content-length': '9',
      'access-control-allow-origin': '*',
    },
  });
  assert.deepEqual([status, headers], [201, { 'content-type': 'a/b', etag: '"1"' }]);
});
