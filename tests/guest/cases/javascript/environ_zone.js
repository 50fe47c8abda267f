console.log(new Date(0).toString(), Intl.DateTimeFormat().resolvedOptions().timeZone)
