# What an agent should know; put them where your harness looks for skills, or let it read them from here.
skillsdir = $(pkgdatadir)/skills/review-flows
dist_skills_DATA = skills/review-flows/SKILL.md
