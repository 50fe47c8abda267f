console.log(process.exitCode, process.cwd(), process.features, process.release.name, process.config.variables.napi_build_version, process.version)
console.log(process.eventNames(), process.listenerCount('exit'), process.domain, process.report === undefined)
console.log(process.getActiveResourcesInfo(), Object.keys(process).sort())
