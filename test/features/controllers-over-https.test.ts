import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONFIG_MAPS, NAMESPACES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { createAuthority, openAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import { createClient } from '../../packages/client/src/create-client.ts';
import { createInformerSet } from '../../packages/client/src/informer/informer-set.ts';
import { createGarbageCollectorController } from '../../packages/kube-controllers/src/controllers/garbage-collector-controller.ts';
import { createNamespaceController } from '../../packages/kube-controllers/src/controllers/namespace-controller.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { createHttpsTransport } from '../../packages/runtime/src/http/https-transport.ts';
import { startTlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { createLogger, type LogRecord, silentLogger } from '../../packages/runtime/src/log/log.ts';
import { startServer } from '../testkit/in-process-server.ts';

// S-053
test('controllers work the same over HTTPS, and go on after the server was away', async () => {
  const server = await startServer();
  const authority = await openAuthority(await createAuthority(systemClock), systemClock);
  const tls = await authority.issue({ commonName: 'server', ipAddresses: ['127.0.0.1'], usage: 'server', days: 1 });
  const listen = (port: number) =>
    startTlsServer({ handler: server.handler, host: '127.0.0.1', port, tls, log: silentLogger });
  let front = await listen(0);
  const transport = createHttpsTransport({ server: `https://127.0.0.1:${front.port}`, ca: authority.certificate });

  const logged: LogRecord[] = [];
  const log = createLogger((record) => logged.push(record), 'error');
  const client = createClient(transport);
  const informers = createInformerSet(client, { log });
  const environment = { client, informers, clock: systemClock, log };
  const controllers = [createNamespaceController(environment), createGarbageCollectorController(environment)];
  const stop = new AbortController();
  const running = Promise.all([informers.start(stop.signal), ...controllers.map((one) => one.start(stop.signal))]);

  const local = createClient(server.handler);
  const gone = async (read: () => Promise<unknown>): Promise<void> => {
    for (;;) {
      try {
        await read();
      } catch (error) {
        if (isNotFound(error)) return;
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const round = async (name: string): Promise<void> => {
    await local.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const key = { namespace: name, name: 'child' };
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: 'no-such' }];
    const metadata = { name: 'child', namespace: name, ownerReferences };
    await local.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
    await gone(() => local.get(CONFIG_MAPS, key));
    await local.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'content', namespace: name },
    });
    await local.delete(NAMESPACES, { namespace: '', name });
    await gone(() => local.get(NAMESPACES, { namespace: '', name }));
  };
  await round('first');
  const { port } = front;
  await front.close();
  front = await listen(port);
  await round('second');

  stop.abort();
  await running;
  transport.close();
  await front.close();
  await server.stop();
  assert.deepEqual(logged, []);
});
