/** The flags of `coracle up`, and those of them that other commands have too. */
import { AUDIT_FLAGS } from './audit-flags.ts';
import { AUTHENTICATION_FLAGS } from './authentication-flags.ts';
import { AUTHORIZATION_FLAGS } from './authorization-flags.ts';
import { BYTE_LIMIT_FLAGS } from './byte-limit-flags.ts';
import { DATA_DIR, JSON_OUT, under } from './cluster-flags.ts';
import { type Command, switchFlag, valueFlag } from './command.ts';
import { OIDC_FLAGS } from './oidc-flags.ts';
import { TOKEN_WEBHOOK_FLAGS } from './token-webhook-flags.ts';

export const HOST_DISK = valueFlag(
  'DIR',
  'directory that hostDisk volumes may be in; may be given again (needs the HostDisk feature gate)',
  { multiple: true },
);
export const ALLOW_HOST_PORTS = switchFlag(
  'guests may have ports of this host under their own number (annotation coracle.dev/host-ports)',
);
export const CONTROLLERS = valueFlag(
  'LIST',
  "controllers to run: '*' = all, 'name' = this one, '-name' = not this one, '' = none (default: *)",
  { mayBeEmpty: true },
);
export const CLUSTER_NAME = valueFlag(
  'NAME',
  'name that cluster selectors of RootSyncs and RepoSyncs go by (default: the cluster has none)',
);

/** Port of the API where none is asked for. */
export const DEFAULT_PORT = 16443;

export const UP_FLAGS: Command['flags'] = {
  'data-dir': DATA_DIR,
  port: valueFlag('N', `API port; 0 picks a free one (default: ${DEFAULT_PORT})`),
  nodes: valueFlag('N', 'node agents to run in this process (default: 1)'),
  detach: switchFlag('return as soon as the API is ready'),
  'no-merge-kubeconfig': switchFlag("leave the user's kubeconfig alone"),
  json: JSON_OUT,
  controllers: CONTROLLERS,
  'cluster-name': CLUSTER_NAME,
  ...under('Guests', { 'host-disk': HOST_DISK, 'allow-host-ports': ALLOW_HOST_PORTS }),
  ...under('Network', {
    'bind-address': valueFlag(
      'IP',
      'address of this host to serve on, for nodes and users on other machines; 0.0.0.0 or :: = all (default: 127.0.0.1)',
    ),
    'upload-port': valueFlag(
      'N',
      'port that images are uploaded to (virtctl image-upload); 0 picks a free one (default: 0)',
    ),
    'service-cluster-ip-range': valueFlag(
      'CIDR',
      'IPv4 range that Services get cluster IPs from (default: 10.96.0.0/16)',
    ),
    'cors-allowed-origins': valueFlag(
      'REGEXP',
      'origins whose web pages may call the API; may be given again (default: none)',
      { multiple: true },
    ),
  }),
  ...under('Authentication', {
    'token-auth-file': valueFlag('FILE', 'users by token, lines of token,user,uid[,"group1,group2"]'),
    ...OIDC_FLAGS,
    ...TOKEN_WEBHOOK_FLAGS,
    ...AUTHENTICATION_FLAGS,
  }),
  ...under('Authorization', AUTHORIZATION_FLAGS),
  ...under('Audit', AUDIT_FLAGS),
  ...under('Limits', BYTE_LIMIT_FLAGS),
};
