import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { test } from 'node:test';
import { eventually } from '../../../../../test/testkit/eventually.ts';
import {
  A,
  attach,
  INSIDE,
  newSwitch,
  SERVICE,
  setState,
  since,
  stateOf,
} from '../../../../../test/testkit/switch-guests.ts';
import { makeFrame, numberOf, put16, UDP } from '../ipv4-frame.ts';
import { askServers } from './external-resolver.ts';
import type { NameResolvers, NetworkRule } from './switch-state.ts';

const query = (name: string): Uint8Array => {
  const bytes = [...name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]), 0, 0, 1, 0, 1];
  return Uint8Array.from([7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...bytes]);
};

// S-1453: `dnsPolicy` and `dnsConfig.nameservers` of a machine are followed: names of the cluster are the cluster's to answer
//   where the policy says so, all others go to the host's resolver and then to the servers of the machine; with `None`
//   they alone are asked.
test('names go to the cluster, the host and the servers of a machine as its policy says', async () => {
  const asked: string[] = [];
  const network = newSwitch(
    () => 0,
    async (question, { host, servers }) => {
      asked.push([...(host ? ['host'] : []), ...servers].join());
      const answer = question.slice();
      put16(answer, 2, 0x8180);
      return answer;
    },
  );
  const names = [{ name: 'web.default.svc', addresses: [SERVICE] }];
  const rules: NetworkRule[] = [{ id: 'out', blocks: [{ cidr: '192.0.2.1/32', except: [] }] }];
  const ask = async (name: string, resolvers?: NameResolvers): Promise<string> => {
    const guest = attach(network, A, resolvers && { resolvers });
    const payload = new Uint8Array([0, 40, 0, 53, 0, 0, 0, 0, ...query(name)]);
    put16(payload, 4, payload.length);
    asked.length = 0;
    guest.take(makeFrame({ protocol: UDP, source: numberOf(INSIDE), destination: numberOf('10.0.2.3'), payload }));
    await eventually('an answer', () => guest.got.length > 0);
    assert.deepEqual(guest.got, [`17 10.0.2.3:53 > ${INSIDE}:40`]);
    guest.end.close();
    return asked.join();
  };
  // A loopback address, a Service: no guest reaches the first, and the node not the second.
  const servers = ['192.0.2.1', '192.0.2.2', '127.0.0.1', SERVICE, '2001:db8::1', '::1'];
  const own = '192.0.2.1,192.0.2.2,2001:db8::1';
  const services = [{ address: SERVICE, protocol: 'tcp' as const, port: 80, targets: [] }];
  setState(network, stateOf('one', [since(A)], { names, services }));
  const first = { cluster: true, host: true, servers };
  assert.equal(await ask('web.default.svc.cluster.local', first), '');
  assert.equal(await ask('example.com', first), `host,${own}`);
  assert.equal(await ask('1.2.0.192.in-addr.arpa', first), `host,${own}`);
  assert.equal(await ask('web.default.svc.cluster.local', { ...first, cluster: false }), `host,${own}`);
  assert.equal(await ask('web.default.svc', { cluster: false, host: false, servers }), own);
  assert.equal(await ask('web.default.svc'), '');
  const pods = [{ address: A, nodes: ['one'], egress: ['out'] }];
  setState(network, stateOf('one', [since(A)], { names, services, pods, rules }));
  assert.equal(await ask('example.com', { cluster: false, host: false, servers }), '192.0.2.1', 'what policies allow');
});

test('askServers() takes the answer of the first server that has one', async (t) => {
  const serve = async (code: number | undefined): Promise<string> => {
    const server = createSocket('udp4');
    t.after(() => server.close());
    server.on('message', (message, { port, address }) => {
      if (code === undefined) return;
      const stray = Buffer.from(message);
      stray[0] = 9;
      stray[2] = 0x81;
      server.send(stray, port, address);
      put16(message, 2, 0x8180 | code);
      server.send(message, port, address);
    });
    await new Promise<void>((done) => server.bind(0, '127.0.0.1', done));
    return `127.0.0.1:${server.address().port}`;
  };
  const [silent, failing, good] = [await serve(undefined), await serve(2), await serve(3)];
  const codeOf = async (...servers: string[]) => {
    const answer = await askServers(query('example.com'), servers);
    return answer && [answer[0], (answer[3] ?? 0) & 15];
  };
  assert.deepEqual(await codeOf('127.0.0.1:1', failing, silent, good), [7, 3]);
  assert.deepEqual(await codeOf(failing, '127.0.0.1:1'), [7, 2]);
  assert.equal(await codeOf(), undefined);
});
