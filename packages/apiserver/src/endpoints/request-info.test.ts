import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isLongRunning, parseRequestInfo } from './request-info.ts';

const info = (method: string, pathAndQuery: string) => {
  const [path = '', query = ''] = pathAndQuery.split('?');
  return parseRequestInfo({ method, path, query });
};

// Compat HTTP, P0, yes: request info: verbs, groups, namespaces, subresources, name from a field selector
test('parseRequestInfo() reads resource requests', () => {
  // method, path -> verb group/version namespace resource/subresource name
  const cases: [string, string, string][] = [
    ['GET', '/api/v1/pods', 'list /v1  pods/ '],
    ['GET', '/api/v1/namespaces/ns/pods', 'list /v1 ns pods/ '],
    ['GET', '/api/v1/namespaces/ns/pods?watch=true', 'watch /v1 ns pods/ '],
    ['GET', '/api/v1/namespaces/ns/pods?watch=1', 'watch /v1 ns pods/ '],
    ['GET', '/api/v1/namespaces/ns/pods?watch=false', 'list /v1 ns pods/ '],
    ['GET', '/api/v1/namespaces/ns/pods/p', 'get /v1 ns pods/ p'],
    ['HEAD', '/api/v1/namespaces/ns/pods/p', 'get /v1 ns pods/ p'],
    ['POST', '/api/v1/namespaces/ns/pods', 'create /v1 ns pods/ '],
    ['PUT', '/api/v1/namespaces/ns/pods/p', 'update /v1 ns pods/ p'],
    ['PATCH', '/api/v1/namespaces/ns/pods/p/status', 'patch /v1 ns pods/status p'],
    ['DELETE', '/api/v1/namespaces/ns/pods/p', 'delete /v1 ns pods/ p'],
    ['DELETE', '/api/v1/namespaces/ns/pods', 'deletecollection /v1 ns pods/ '],
    ['GET', '/api/v1/namespaces', 'list /v1  namespaces/ '],
    ['GET', '/api/v1/namespaces/ns', 'get /v1 ns namespaces/ ns'],
    ['PUT', '/api/v1/namespaces/ns/finalize', 'update /v1 ns namespaces/finalize ns'],
    ['PATCH', '/api/v1/namespaces/ns/status', 'patch /v1 ns namespaces/status ns'],
    ['GET', '/apis/apps/v1/namespaces/ns/deployments/d/scale', 'get apps/v1 ns deployments/scale d'],
    [
      'GET',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode',
      'get rbac.authorization.k8s.io/v1  clusterroles/ system:node',
    ],
    ['GET', '/api/v1/watch/pods', 'watch /v1  pods/ '],
    ['GET', '/api/v1/watch/namespaces/ns/pods/p', 'watch /v1 ns pods/ p'],
    ['GET', '/api/v1/pods?fieldSelector=metadata.name%3Dp', 'list /v1  pods/ p'],
    ['GET', '/api/v1/pods?fieldSelector=metadata.name!%3Dp', 'list /v1  pods/ '],
    ['DELETE', '/api/v1/namespaces/ns/pods?fieldSelector=metadata.name%3Dp', 'deletecollection /v1 ns pods/ p'],
  ];
  for (const [method, path, expected] of cases) {
    const { verb, group, version, namespace, resource, subresource, name, isResource } = info(method, path);
    assert.ok(isResource, path);
    assert.equal(`${verb} ${group}/${version} ${namespace} ${resource}/${subresource} ${name}`, expected, path);
  }
});

test('parseRequestInfo() takes everything else for a plain path', () => {
  for (const path of [
    '/',
    '',
    '/api',
    '/api/v1',
    '/apis',
    '/apis/apps',
    '/apis/apps/v1',
    '/healthz',
    '/version',
    '//',
  ]) {
    const { isResource, verb } = info('GET', path);
    assert.deepEqual([isResource, verb], [false, 'get'], path);
  }
});

test('parseRequestInfo() keeps the segments behind a subresource', () => {
  const { parts, subresource } = info('GET', '/apis/g/v1/namespaces/ns/vmis/vm/portforward/22/tcp');
  assert.equal(subresource, 'portforward');
  assert.deepEqual(parts, ['vmis', 'vm', 'portforward', '22', 'tcp']);
});

// S-116
test('parseRequestInfo() never throws', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (method, path, query) => {
      parseRequestInfo({ method, path: `/api/v1/${path}`, query });
      parseRequestInfo({ method, path, query: `fieldSelector=${query}` });
    }),
  );
});

test('isLongRunning() knows watches and connections', () => {
  assert.equal(isLongRunning(info('GET', '/api/v1/pods?watch=true')), true);
  assert.equal(isLongRunning(info('GET', '/api/v1/namespaces/n/pods/p/log')), true);
  assert.equal(isLongRunning(info('GET', '/api/v1/pods')), false);
});
