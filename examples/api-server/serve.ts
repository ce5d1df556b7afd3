/** A Kubernetes API server of its own, without virtual machines: prints a kubeconfig and serves until it is stopped. */

import { createApiServer } from '@coracle/apiserver';
import { createAuthority, openAuthority } from '@coracle/apiserver/auth/certificate-authority';
import { PROTOBUF } from '@coracle/apiserver/kinds/protobuf/documents';
import { protobufBody } from '@coracle/apiserver/kinds/protobuf/request-body';
import { systemClock } from '@coracle/runtime/clock/clock';
import { startTlsServer } from '@coracle/runtime/http/tls-server';
import { silentLogger } from '@coracle/runtime/log/log';

// kubectl sends built-in kinds as protobuf.
const { handler } = await createApiServer({ parts: { bodyDecoders: new Map([[PROTOBUF, protobufBody]]) } });

const authority = await openAuthority(await createAuthority(systemClock), systemClock);
const serving = await authority.issue({ commonName: 'api', ipAddresses: ['127.0.0.1'], usage: 'server', days: 1 });
const admin = { commonName: 'admin', organizations: ['system:masters'], usage: 'client', days: 1 } as const;
const { certificate, key } = await authority.issue(admin);
const tls = { ...serving, clientCa: authority.certificate };
const { port } = await startTlsServer({
  handler,
  host: '127.0.0.1',
  port: 0,
  tls,
  bodiesWhenAsked: true,
  log: silentLogger,
});

const base64 = (pem: string): string => Buffer.from(pem).toString('base64');
const server = { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': base64(authority.certificate) };
const user = { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) };
console.log(
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'example', cluster: server }],
    users: [{ name: 'admin', user }],
    contexts: [{ name: 'example', context: { cluster: 'example', user: 'admin' } }],
    'current-context': 'example',
  }),
);
