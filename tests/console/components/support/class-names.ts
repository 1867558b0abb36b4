/** Stands for a stylesheet or a picture where there is no bundler: every class has its own name. */
const classNames = new Proxy({}, { get: (_, name) => String(name) });

export default classNames;
