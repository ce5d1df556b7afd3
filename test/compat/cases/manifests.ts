/** Objects that several tables use. */

export const CONFIG_MAP = `apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  labels: {a: b}
data: {one: "1", two: "2"}
`;

export const CONFIG_MAP_WITHOUT_ONE = CONFIG_MAP.replace('one: "1", ', '');

export const VM = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: vm
  labels: {app: demo}
spec:
  runStrategy: Halted
  template:
    metadata:
      labels: {app: demo}
    spec:
      domain:
        devices:
          disks: [{name: root, disk: {bus: virtio}}]
        resources: {requests: {memory: 64Mi}}
      volumes: [{name: root, containerDisk: {image: example.invalid/disk:1}}]
`;
